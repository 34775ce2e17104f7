#!/usr/bin/python3
"""Runs clang-tidy over the project's translation units, several at once.

    tidy.py BUILD_FOLDER [--jobs N] [--all | --once] [--since COMMIT | --since-clean] [FILE...]

BUILD_FOLDER was configured with clang. A unit that was clean stays clean until its preprocessed
text, .clang-tidy or clang-tidy itself changes, so that a second run is quick; --all forgets that, and
--once, for a tree that is looked at once, does not spend the time to remember it. --since looks only at
units that differ from a commit: in their source, or in a header of ours that they include; at all if
.clang-tidy or a warning of the top meson file differs. --since-clean takes the nearest to HEAD of the
commits that are known to be clean: RIO_LANDED, origin/main, and the one in scripts/tidy.clean.
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


INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def included(name, known):
    """The files of ours that a file includes, through others, too, with itself."""
    if name not in known:
        known[name] = {name}
        path = os.path.join(ROOT, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                for used in INCLUDE.findall(file.read()):
                    # A header that is installed is named without its folder.
                    known[name] |= {used} if os.path.isfile(os.path.join(ROOT, used)) else {"*/" + used}
    found, left = set(), {name}
    while left:
        one = left.pop()
        found.add(one)
        if one not in known:
            included(one, known)
        left |= known[one] - found
    return found


def differs(name, changed, known):
    """Whether a unit differs, by the files that do."""
    return any(one in changed or (one.startswith("*/") and any(file.endswith(one[1:]) for file in changed))
               for one in included(name, known))


def git(*arguments):
    """The output of git, or None if it fails."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def changed_since(commit):
    """The files that differ from a commit, or None if all units have to be looked at."""
    text = git("diff", "--name-only", commit, "--")
    if text is None:
        return None
    changed = set(text.split("\n")) - {""}
    warnings = git("diff", "-U0", commit, "--", "meson.build") if "meson.build" in changed else ""
    rules = any(os.path.basename(file) == ".clang-tidy" for file in changed)
    return None if rules or re.search(r"^[+-].*-W", warnings, re.MULTILINE) else changed


def clean_commit(names):
    """The nearest ancestor of HEAD among some names of commits, or None. HEAD itself would leave nothing to look at."""
    known = []
    for name in names:
        if name and git("merge-base", "--is-ancestor", name, "HEAD") is not None:
            known.append((int(git("rev-list", "--count", f"{name}..HEAD") or 0), name))
    return min((one for one in known if one[0] > 0), default=(0, None))[1]


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
        with open(os.path.join(ROOT, "scripts", "tidy.clean"), encoding="utf-8") as file:
            args.since = clean_commit((os.environ.get("RIO_LANDED"), "origin/main", file.read().strip()))
    changed = changed_since(args.since) if args.since else None
    if changed is not None:
        known, total = {}, len(chosen)
        chosen = [unit for unit in chosen if differs(unit[0], changed, known)]
        print(f"{len(chosen)} of {total} units differ from {args.since}")
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
