#!/usr/bin/python3
"""Refuses a statement of docs/card.md that no conformance case shows.

  scripts/lib/contract_cases.py [--root FOLDER] [--list]

A statement ends with its id, "[R3]", or, where no case can show it, with the id and the reason, "[P1: REASON]".
An id is a letter of its section (not S: [S0] to [S4] are the five systems) and a number, which no later statement
takes again. Each paragraph and list entry of the page ends with an id, but those before the first section and in
the sections that PROSE names. Above a case of tests/conformance a comment line names what the case shows:

  // R3, R4
  TEST_P(Rings, ...)

--list prints each statement's id and its cases.
Exit code: 0 each statement has a case, 1 something is wrong (FILE:LINE: TEXT each), 2 wrong command line.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/card.md"
PROSE = ("Second edition", "Better than the original page")
ID = re.compile(r"\[([A-RT-Z]\d+)(?:: ([^\]]+))?\](?!\()")
END = re.compile(r"\[[A-RT-Z]\d+(?:: [^\]]+)?\][.:]?$")
SHOWN = re.compile(r"// ([A-Z]\d+(?:, [A-Z]\d+)*)$")
CASE = re.compile(r"TEST_P\((\w+), (\w+)\)")


def statements(root, wrong):
    """{id: (line, reason without a case or None)}"""
    found, section = {}, None
    for number, line in enumerate((root / PAGE).read_text(encoding="utf-8").splitlines(), 1):
        where = f"{PAGE}:{number}"
        if line.startswith("## "):
            section = line[3:]
        elif section is not None and section not in PROSE and line and line[0] not in "#|":
            for name, reason in ID.findall(line):
                if name in found:
                    wrong.append(f"{where}: [{name}] is taken in line {found[name][0]}; take the next free number")
                found.setdefault(name, (number, reason or None))
            if not END.search(line):
                wrong.append(f"{where}: '{line[:40]}…' does not end with an id; add one, such as [X1], and a case")
    return found


def cases(root, wrong):
    """[(where, id, case)]"""
    found = []
    for path in sorted((root / "tests/conformance").glob("*_test.cc")):
        names, where = [], ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            shown, case = SHOWN.match(line), CASE.match(line)
            if shown:
                names, where = shown[1].split(", "), f"{path.relative_to(root)}:{number}"
            elif case:
                found += [(where, name, f"{case[1]}.{case[2]}") for name in names]
                names = []
            elif names and not line.startswith("//"):
                wrong.append(f"{where}: ids without a case; put the line above a TEST_P")
                names = []
    return found


def look(root):
    """@return (what is wrong, {id: cases}, ids that need none)"""
    wrong, shown = [], {}
    stated = statements(root, wrong)
    for where, name, case in cases(root, wrong):
        if name not in stated:
            wrong.append(f"{where}: {case} shows {name}, which {PAGE} does not have; correct the id")
        shown.setdefault(name, []).append(case)
    without = {name for name, (_, reason) in stated.items() if reason is not None}
    for name, (number, _) in stated.items():
        if name not in shown and name not in without:
            wrong.append(f"{PAGE}:{number}: no case shows [{name}]; write one, or say why none can: [{name}: REASON]")
        if name in shown and name in without:
            wrong.append(f"{PAGE}:{number}: [{name}] has a case, {shown[name][0]}; take the reason out")
    return wrong, {name: shown.get(name, []) for name in stated}, without


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    troubles, table, exempt = look(options.root)
    for text in troubles:
        print(text, file=sys.stderr)
    if options.list:
        for key, names_of in table.items():
            print(f"{key:4} {', '.join(names_of) or 'none: ' + ('a reason is given' if key in exempt else 'missing')}")
    print(f"{len(table)} statements, {sum(1 for c in table.values() if c)} with a case, {len(exempt)} that no case can show")
    sys.exit(1 if troubles else 0)
