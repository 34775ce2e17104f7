"""A page of the docs as steps: commands, and the output that the page shows for each.

Each block of the page has a line above it that says on which machine it runs: <!-- where: NAME -->. A block
is of the kind `console`: `$ COMMAND`, where a long command continues after a \\ at the end of a line, then
the output. In the output, … within a line stands for any text, and … alone on a line for any lines.
"""
import difflib
import re

ANY = "…"
FENCE = re.compile(r"^\s*(```+)(.*)$")
WHERE = re.compile(r"^<!-- where: (\S+) -->$")


class PageError(Exception):
    """The page is malformed."""


class Step:
    def __init__(self, where, line):
        self.where, self.line = where, line
        self.command = ""
        self.output = []

    def __str__(self):
        return f"line {self.line}: $ {self.command}"

    def checks_something(self):
        return not self.output or any(line.strip() != ANY for line in self.output)


def blocks(text):
    """(where or None, kind, line number of the fence, lines) of each fenced block."""
    where, fence, kind, begin, inside = None, None, "", 0, []
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        if fence is None and found:
            fence, kind, begin, inside = found.group(1), found.group(2).strip(), number, []
        elif fence is not None and line.strip() == fence:
            yield where, kind, begin, inside
            where, fence = None, None
        elif fence is not None:
            inside.append(line)
        elif line.strip():
            tag = WHERE.match(line.strip())
            where = tag.group(1) if tag else None
    if fence is not None:
        raise PageError(f"line {begin}: the block has no end")


def steps_of(where, begin, lines):
    steps, goes_on = [], False
    for number, line in enumerate(lines, begin + 1):
        if goes_on:
            steps[-1].command += "\n" + line
        elif line.startswith("$ "):
            steps.append(Step(where, number))
            steps[-1].command = line[2:]
        elif steps:
            steps[-1].output.append(line)
        else:
            raise PageError(f"line {number}: output before the first command")
        goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
    return steps


def parse(text, machines):
    """All steps of a page, in order. Every block must be checked."""
    steps = []
    for where, kind, begin, lines in blocks(text):
        if kind != "console":
            raise PageError(f"line {begin}: a block of the kind '{kind}': only console can be checked")
        if where not in machines:
            raise PageError(f"line {begin}: where is this? Above it belongs <!-- where: NAME -->, NAME one of "
                            f"{', '.join(machines)}")
        found = steps_of(where, begin, lines)
        if not found:
            raise PageError(f"line {begin}: a block without a command")
        steps += found
    for step in steps:
        if not step.checks_something():
            raise PageError(f"{step}: nothing of its output is checked")
    return steps


def pattern(lines):
    parts = []
    for line in lines:
        if line.strip() == ANY:
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            # Blanks beside it belong to a table's column, which is as wide as its text.
            parts.append(re.sub(rf" *{ANY} *", r"[^\\n]*?", re.escape(line.rstrip()).replace(r"\ ", " ")) + "\n")
    return "".join(parts)


def difference(wanted, seen):
    """The difference between the output and the page, "" if there is none. Both are lines."""
    wanted, seen = ([line.rstrip() for line in lines] for lines in (wanted, seen))
    while seen and not seen[-1]:
        seen.pop()
    if re.fullmatch(pattern(wanted), "".join(line + "\n" for line in seen)):
        return ""
    return "\n".join(difflib.unified_diff(wanted, seen, "the page", "the machine", n=99, lineterm=""))
