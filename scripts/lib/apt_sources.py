#!/usr/bin/python3
"""Prints this machine's own apt sources in deb822 form, with another Types line.

    apt_sources.py --types deb-src --codename bookworm [--fields URIs|Suites|...]

Reads one-line lists (/etc/apt/sources.list, sources.list.d/*.list) and deb822 files
(sources.list.d/*.sources). Keeps only sources whose suite is CODENAME or CODENAME-something,
that is the distribution's own ones, unless none is left by that.
"""
import argparse
import glob
import re
import sys


def one_line(path):
    """Entries of a one-line list: deb [options] uri suite components..."""
    for line in open(path, encoding="utf-8"):
        match = re.match(r"\s*deb(?:-src)?\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if not match:
            continue
        options, uri, suite, components = match.groups()
        entry = {"URIs": uri, "Suites": suite, "Components": components.strip()}
        for option in (options or "").split():
            name, _, value = option.partition("=")
            field = {"signed-by": "Signed-By", "trusted": "Trusted",
                     "check-valid-until": "Check-Valid-Until"}.get(name.lower())
            if field:
                entry[field] = value.replace(",", " ")
        yield entry


def deb822(path):
    """Entries of a .sources file; field names in any case, values over several lines."""
    known = ("Types", "URIs", "Suites", "Components", "Signed-By", "Trusted", "Enabled",
             "Check-Valid-Until")
    names = {name.lower(): name for name in known}
    text = open(path, encoding="utf-8").read()
    for stanza in re.split(r"\n\s*\n", text):
        entry, field = {}, None
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in " \t" and field:
                entry[field] += "\n" + line
            elif ":" in line:
                name, _, value = line.partition(":")
                field = names.get(name.strip().lower(), name.strip())
                entry[field] = value.strip()
        if "URIs" in entry and entry.get("Enabled", "yes").lower() not in ("no", "false", "0"):
            yield {name: entry[name] for name in known if name in entry and name != "Enabled"}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", required=True, help="deb or deb-src")
    parser.add_argument("--codename", required=True, help="bookworm, trixie, noble ...")
    parser.add_argument("--as-codename", help="write this release's suites instead")
    parser.add_argument("--root", default="", help="read ROOT/etc/apt")
    args = parser.parse_args()

    entries = []
    for path in sorted(glob.glob(args.root + "/etc/apt/sources.list") +
                       glob.glob(args.root + "/etc/apt/sources.list.d/*.list")):
        entries += one_line(path)
    for path in sorted(glob.glob(args.root + "/etc/apt/sources.list.d/*.sources")):
        entries += deb822(path)

    def own_suites(entry):
        return [s for s in entry.get("Suites", "").split()
                if s == args.codename or s.startswith(args.codename + "-")]

    if any(own_suites(entry) for entry in entries):
        entries = [dict(entry, Suites=" ".join(own_suites(entry)))
                   for entry in entries if own_suites(entry)]
    seen = set()
    for entry in entries:
        entry["Types"] = args.types
        if args.as_codename:
            entry["Suites"] = " ".join(args.as_codename + suite[len(args.codename):]
                                       for suite in entry["Suites"].split())
        text = "".join(f"{name}: {value}\n" for name, value in sorted(entry.items()))
        if text not in seen:
            seen.add(text)
            print(text)
    if not seen:
        sys.exit("apt_sources.py: no apt source found below " + args.root + "/etc/apt")


if __name__ == "__main__":
    main()
