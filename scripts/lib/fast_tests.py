#!/usr/bin/python3
"""Prints the tests that a list chooses, one a line: of the suite unit, and for foreign of the short ones of soak.

    fast_tests.py [--list NAME] [--targets | --built] BUILD_FOLDER

--list NAME   scripts/NAME.tests: fast (the default; scripts/test --fast) or foreign (scripts/soak --ci)
--targets     what ninja has to build for them, instead
--built       only those for which everything is there
"""
import argparse
import fnmatch
import json
import os

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(SCRIPTS, "fast.tests")


def rules(text):
    """[(True for '+', pattern)]. Raises ValueError on a line that is neither."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        sign, _, pattern = line.partition(" ")
        if sign not in ("+", "-") or not pattern.strip():
            raise ValueError(f"line {number} of the list: want '+ PATTERN' or '- PATTERN', not '{line}'")
        found.append((sign == "+", pattern.strip()))
    return found


def is_fast(name, chosen):
    verdict = True
    for keep, pattern in chosen:
        if fnmatch.fnmatchcase(name, pattern):
            verdict = keep
    return verdict


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--list", default="fast")
    parser.add_argument("build")
    args = parser.parse_args()
    build = os.path.realpath(args.build)
    info = {}
    for kind in ("targets", "tests"):
        with open(os.path.join(build, "meson-info", f"intro-{kind}.json"), encoding="utf-8") as file:
            info[kind] = json.load(file)
    with open(os.path.join(SCRIPTS, f"{args.list}.tests"), encoding="utf-8") as file:
        chosen = rules(file.read())
    suites = {"unit", "soak"} if args.list == "foreign" else {"unit"}
    tests = []
    for test in info["tests"]:
        own = {suite.split(":")[-1] for suite in test["suite"]}
        if own & suites and "long" not in own and is_fast(test["name"], chosen):
            tests.append(test)
    files = {target["id"]: target["filename"] for target in info["targets"]}

    def needs(test):
        return {name for target in test["depends"] for name in files.get(target, ())}

    if not args.targets:
        print("\n".join(test["name"] for test in tests if not args.built or all(map(os.path.exists, needs(test)))))
        return
    needed = {name for test in tests for name in needs(test)}
    print("\n".join(sorted(os.path.relpath(name, build) for name in needed)))


if __name__ == "__main__":
    main()
