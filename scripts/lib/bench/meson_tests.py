"""Tests of the tree, run by meson for a benchmark."""
import glob
import json
import os
import subprocess

GOOD = ("OK", "EXPECTEDFAIL")
SECONDS = 1800


class TestsError(Exception):
    pass


def _meson(build, *args):
    line = ["meson", "test", "-C", build, "--no-rebuild", *args]
    try:
        return subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise TestsError(f"{' '.join(line)}: not done within {SECONDS} s") from error


def _listed(build, *selection):
    """@return tests as meson lists them: PROJECT:SUITES / NAME."""
    return [line for line in _meson(build, *selection, "--list").stdout.splitlines() if " / " in line]


def short(name):
    return name.split(" / ", 1)[-1]


def _run(build, base, *selection):
    """Runs them one by one. @param base: name of the log. @return objects of meson's log."""
    pattern = os.path.join(build, "meson-logs", f"{base}*.json")
    for old in glob.glob(pattern):
        os.remove(old)
    done = _meson(build, "--logbase", base, "--num-processes", "1", *selection)
    results = []
    for path in glob.glob(pattern):
        with open(path, encoding="utf-8") as file:
            results += [json.loads(line) for line in file]
    return results, done


def _shown(build, selection):
    return " ".join(["meson", "test", "-C", build, *selection])


def suite(build, name):
    """@return ({test: result as meson has it}, the command)."""
    selection = ("--suite", name)
    listed = [line for line in _listed(build, *selection) if name in line.partition(" ")[0]]
    if not listed:
        raise TestsError(f"the suite '{name}' has no tests: tests/{name} is not in this build")
    results, done = _run(build, f"bench-{name}", *selection)
    if len(results) < len(listed):
        raise TestsError(f"only {len(results)} of {len(listed)} tests were run:\n"
                         + "\n".join((done.stdout + done.stderr).splitlines()[-8:]))
    return {one["name"]: one["result"] for one in results}, _shown(build, selection)


def named(build, names):
    """@return ({name: object of meson's log}, the command). A test that this build lacks is left out."""
    there = {short(line) for line in _listed(build)}
    wanted = sorted(set(names) & there)
    results = _run(build, "bench-named", *wanted)[0] if wanted else []
    return {short(one["name"]): one for one in results if short(one["name"]) in wanted}, _shown(build, wanted)
