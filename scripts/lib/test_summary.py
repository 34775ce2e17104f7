#!/usr/bin/python3
"""Reads meson's testlog.json, names what failed and what was skipped, and prints as its last
line 'N passed, N failed, N skipped'. A GoogleTest program counts as its test cases, any other
as one. Exit code 1 if anything failed, or if meson did."""
import argparse
import json
import os
import re
import sys
import textwrap

MANY = 4  # as many tests skipped for one reason are reported in one line
FAILED = {"FAIL", "TIMEOUT", "INTERRUPT", "ERROR", "UNEXPECTEDPASS"}
CASE = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+\.\S+)(?:, where .*)? \(\d+ ms\)$", re.M)
RUN = re.compile(r"^\[ RUN +\] (\S+)$", re.M)


def skip_reason(text, case=None):
    """The reason that a skipped test gives: GoogleTest's 'Skipped' message, or its last line."""
    if case:
        text = text.partition("[ RUN      ] " + case + "\n")[2].partition("[  SKIPPED ]")[0]
        lines = [line for line in text.splitlines()
                 if line.strip() and not re.search(r": Skipped$", line)]
        return " ".join(lines[:2]) or "no reason given"
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("skipped: ") if lines else "no reason given"


def tail(text, lines=25):
    return "".join("    " + line + "\n" for line in text.splitlines()[-lines:])


def failure_text(output, case):
    """The part of a GoogleTest program's output that belongs to one case."""
    return output.partition("[ RUN      ] " + case + "\n")[2].partition("[  FAILED  ] " + case)[0]


class Summary:
    def __init__(self):
        self.passed = 0
        self.failed = []   # (name, what, output)
        self.skipped = []  # (name, reason)

    def add(self, test):
        name = test["name"].split(" / ")[-1]
        output = test.get("stdout") or ""
        errors = test.get("stderr") or ""
        result = test["result"]
        cases = dict((case, verdict) for verdict, case in CASE.findall(output))
        if not cases:
            self.add_plain(name, result, output, errors)
            return
        for case, verdict in cases.items():
            if verdict == "OK":
                self.passed += 1
            elif verdict == "SKIPPED":
                self.skipped.append((f"{name}: {case}", skip_reason(output, case)))
            else:
                self.failed.append((f"{name}: {case}", "failed", failure_text(output, case)))
        unfinished = [case for case in RUN.findall(output) if case not in cases]
        if result in FAILED and (unfinished or "FAILED" not in cases.values()):
            where = f", in {unfinished[-1]}" if unfinished else ""
            self.failed.append((name, result.lower() + where, output + errors))

    def add_plain(self, name, result, output, errors):
        if result in ("OK", "EXPECTEDFAIL"):
            self.passed += 1
        elif result == "SKIP":
            self.skipped.append((name, skip_reason(output + errors)))
        else:
            self.failed.append((name, result.lower(), output + errors))


def print_skipped(skipped):
    """A line for each test, or one line for many tests with one reason."""
    by_reason = {}
    for name, reason in skipped:
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        if len(names) < MANY:
            for name in names:
                print(f"{'skipped':<10} {name}: {reason}")
        else:
            print(f"{'skipped':<10} {len(names)} tests: {reason}")
            print(textwrap.fill(", ".join(names), 100, initial_indent=" " * 11, subsequent_indent=" " * 11,
                                break_on_hyphens=False, break_long_words=False))


def print_missing(path):
    """Prints the list of missing parts that scripts/lib/parts.sh wrote."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            _, text, remedy = line.rstrip("\n").split("\t")
            print(f"{'missing':<10} {text}\n{'':<10} remedy: {remedy}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log")
    parser.add_argument("--exit-code", type=int, default=0, help="of meson test")
    parser.add_argument("--limit", type=int, default=0, help="seconds that meson test had")
    parser.add_argument("--selected", action="store_true",
                        help="particular tests were asked for, so that none at all is a failure")
    parser.add_argument("--missing", help="list of scripts/lib/parts.sh: what this machine lacks")
    parser.add_argument("--run-log", help="what meson test printed")
    args = parser.parse_args()

    summary = Summary()
    seconds = 0.0
    if os.path.exists(args.log):
        for line in open(args.log, encoding="utf-8", errors="replace"):
            test = json.loads(line)
            seconds += test.get("duration", 0)
            summary.add(test)
    if args.exit_code in (124, 137):
        summary.failed.append(("meson test", f"stopped after {args.limit} s", ""))
    elif args.exit_code != 0 and not summary.failed:
        text = open(args.run_log, encoding="utf-8", errors="replace").read() if args.run_log else ""
        if "No suitable tests defined" not in text and "No tests defined" not in text:
            summary.failed.append(("meson test", f"exit code {args.exit_code}", text))

    if args.selected and not summary.passed and not summary.failed and not summary.skipped:
        lacks = args.missing and os.path.exists(args.missing) and os.path.getsize(args.missing)
        why = "; the build lacks the parts named below" if lacks else ""
        summary.failed.append(("meson test", "no test of that name or suite" + why, ""))

    print_skipped(summary.skipped)
    for name, what, output in summary.failed:
        print(f"{'FAILED':<10} {name}: {what}")
        sys.stdout.write(tail(output))
    if args.missing and os.path.exists(args.missing):
        print_missing(args.missing)
    print(f"{'tests':<10} {seconds:.0f} s of test time")
    print(f"{summary.passed} passed, {len(summary.failed)} failed, {len(summary.skipped)} skipped")
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
