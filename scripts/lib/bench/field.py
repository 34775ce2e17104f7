"""The rows of tests/field/rows.tsv, and whether their tests pass."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# pylint: disable=wrong-import-position
from test_summary import Summary  # noqa: E402

ROWS = 21


class FieldError(Exception):
    pass


def read_rows(path):
    """@return {row: names of its tests}."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            row, tab, name = line.partition("\t")
            if not tab or not row.isdigit() or not 1 <= int(row) <= ROWS or not name or name != name.strip():
                raise FieldError(f"{path}:{number}: want ROW<TAB>NAME, with a row of 1 to {ROWS}, not {line!r}")
            rows.setdefault(int(row), []).append(name)
    return rows


def fault(name, results):
    """@param results: {name: object of meson's log}. @return why a test does not count, '' if it does."""
    if name not in results:
        return f"{name} is not in this build"
    summary = Summary()
    summary.add(results[name])
    if summary.failed:
        return f"{name}: {summary.failed[0][1]}"
    if summary.skipped:
        return f"{summary.skipped[0][0]} was skipped: {summary.skipped[0][1]}"
    return "" if summary.passed else f"{name} has no test in it"


def faults(rows, results):
    """@return {row: cause} of the rows that do not count. A row counts if it has tests, and if all of
    them were run and passed."""
    found = {}
    for row in range(1, ROWS + 1):
        bad = [text for text in (fault(name, results) for name in rows.get(row, [])) if text]
        if not rows.get(row):
            bad = ["it has no test"]
        if bad:
            found[row] = "; ".join(bad)
    return found


def counted(args, seconds, **environment):
    """Runs a program that prints a JSON object, and ends with 1 if one of its runs failed.
    @return the object."""
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=seconds, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    except FileNotFoundError as error:
        raise FieldError(f"{args[0]} is not there: scripts/build") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FieldError(str(error)) from error
    objects = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode not in (0, 1) or not objects:
        raise FieldError(f"{' '.join(map(str, args))}: exit code {done.returncode}\n"
                         + "\n".join((done.stdout + done.stderr).splitlines()[-8:]))
    return json.loads(objects[-1])
