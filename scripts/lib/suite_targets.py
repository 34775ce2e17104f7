#!/usr/bin/python3
"""Prints what the tests of some suites need built, as ninja's targets, one a line.

    suite_targets.py BUILD_FOLDER SUITE...
"""
import json
import os
import sys


def main():
    build, suites = os.path.realpath(sys.argv[1]), set(sys.argv[2:])
    info = {}
    for kind in ("targets", "tests"):
        path = os.path.join(build, "meson-info", f"intro-{kind}.json")
        with open(path, encoding="utf-8") as text:
            info[kind] = json.load(text)
    files = {target["id"]: target["filename"] for target in info["targets"]}
    needed = {name for test in info["tests"]
              if suites & {suite.split(":")[-1] for suite in test["suite"]}
              for target in test["depends"] for name in files[target]}
    print("\n".join(sorted(os.path.relpath(name, build) for name in needed)))


if __name__ == "__main__":
    sys.exit(main())
