#!/usr/bin/python3
"""Runs clang-tidy over the project's translation units, several at once.

    tidy.py BUILD_FOLDER [--jobs N] [--all | --once] [--since COMMIT | --since-clean] [FILE...]

BUILD_FOLDER was configured with clang. A unit that was clean stays clean until its preprocessed
text, .clang-tidy or clang-tidy itself changes, so that a second run is quick; --all forgets that, and
--once, for a tree that is looked at once, does not spend the time to remember it. --since looks only at the
units whose source differs from a commit, and at one unit for each header that differs; at all if
.clang-tidy or a warning of the top meson file differs. --since-clean takes the last commit that is known to be
clean (changed.py).
Exit code 1 if clang-tidy had anything to say.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

from changed import changed_since, included, last_clean

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def units(build):
    """(source path from the top, folder, compiler arguments), each source once."""
    seen = {}
    for entry in json.load(open(os.path.join(build, "compile_commands.json"), encoding="utf-8")):
        source = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        name = os.path.relpath(source, ROOT)
        if name.startswith("..") or os.path.realpath(build) in source or "/gen/" in name:
            continue
        seen.setdefault(name, (entry["directory"], shlex.split(entry["command"])))
    return sorted((name, folder, command) for name, (folder, command) in seen.items())


def those_to_look_at(names, changed):
    """The units that differ, and for each header that differs one that includes it: of its name, or one that is looked
    at anyway, or the nearest."""
    wanted = {name for name in names if name in changed}
    known = {}
    reached = {name: included(name, known) for name in names}
    for header in sorted(changed):
        stem, kind = os.path.splitext(header)
        if kind not in (".h", ".hpp"):
            continue
        users = [name for name in names if {header, "*/" + os.path.basename(header)} & reached[name]]
        if users:
            wanted.add(min(users, key=lambda name: (os.path.splitext(name)[0] != stem, name not in wanted,
                                                    -len(os.path.commonprefix((name, header))), name)))
    return wanted


def preprocessed(folder, command):
    """The unit after the preprocessor, comments (NOLINT) kept; None if that fails."""
    words = [word for word in command if os.path.basename(word) != "ccache"]
    out = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MQ", "-MT"):
            skip = True
        elif word not in ("-c", "-MD", "-MMD"):
            out.append(word)
    done = subprocess.run(out + ["-E", "-C", "-P"], cwd=folder, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def tidy(build, version, remembers, unit):
    """(name, seconds, complaint or '')"""
    name, folder, command = unit
    start = time.monotonic()
    text = preprocessed(folder, command) if remembers else None
    key = hashlib.sha256(version + (text or b"") + shlex.join(command).encode()).hexdigest()
    stamp = os.path.join(build, "tidy-clean", name.replace("/", "_"))
    if text is not None and os.path.exists(stamp) and open(stamp).read() == key:
        return name, 0.0, ""
    done = subprocess.run(
        ["clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option",
         os.path.join(ROOT, name)], capture_output=True, text=True)
    if "Error parsing" in done.stderr:  # of .clang-tidy: older ones go on, with no checks at all
        return name, time.monotonic() - start, done.stderr.strip()
    if done.returncode == 0 and not done.stdout.strip():
        if remembers:
            os.makedirs(os.path.dirname(stamp), exist_ok=True)
            with open(stamp, "w") as out:
                out.write(key)
        return name, time.monotonic() - start, ""
    return name, time.monotonic() - start, done.stdout.strip() or done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--since-clean", action="store_true")
    parser.add_argument("files", nargs="*", help="only these, as paths from the top of the tree")
    args = parser.parse_args()

    version = subprocess.run(["clang-tidy", "--version"], capture_output=True).stdout
    version += open(os.path.join(ROOT, ".clang-tidy"), "rb").read()
    if args.all:
        version += str(time.time()).encode()
    chosen = [unit for unit in units(args.build) if not args.files or unit[0] in args.files]
    if args.since_clean:
        args.since = last_clean()
    changed = changed_since(args.since) if args.since else None
    if changed is not None:
        total = len(chosen)
        wanted = those_to_look_at([unit[0] for unit in chosen], changed)
        chosen = [unit for unit in chosen if unit[0] in wanted]
        print(f"{len(chosen)} of {total} units, for what differs from {args.since}")
    bad, fresh, slowest = 0, 0, (0.0, "")
    shown = set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, seconds, complaint in pool.map(lambda u: tidy(args.build, version, not args.once, u), chosen):
            fresh += seconds > 0
            slowest = max(slowest, (seconds, name))
            if complaint:
                bad += 1
                # A header's fault shows in every unit that includes it: print it once.
                block = []
                for line in complaint.splitlines() + [""]:
                    if (": error: " in line or ": warning: " in line or not line) and block:
                        text = "\n".join(block)
                        if text not in shown:
                            shown.add(text)
                            print(re.sub(r"^\S*/\.\./", "", text.replace(ROOT + "/", ""), flags=re.M),
                                  file=sys.stderr)
                        block = []
                    block.append(line)
    note = f", slowest {slowest[1]} {slowest[0]:.0f} s" if fresh else ""
    print(f"{len(chosen)} units ({fresh} not seen before{note}), {bad} with complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
