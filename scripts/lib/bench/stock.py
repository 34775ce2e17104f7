"""The suite of stock programs on the plug-ins, by meson."""
import glob
import json
import os
import subprocess

SUITE = "stock"
GOOD = ("OK", "EXPECTEDFAIL")
SECONDS = 1800


class StockError(Exception):
    pass


def _meson(build, *args):
    line = ["meson", "test", "-C", build, "--no-rebuild", "--suite", SUITE, *args]
    try:
        return subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise StockError(f"{' '.join(line)}: not done within {SECONDS} s") from error


def names(build):
    """@return the tests of the suite."""
    listed = _meson(build, "--list")
    return [line for line in listed.stdout.splitlines() if SUITE in line.partition(" ")[0]]


def run(build):
    """@return ({test: result as meson has it}, the command)."""
    listed = names(build)
    if not listed:
        raise StockError(f"the suite '{SUITE}' has no tests: tests/{SUITE} is not in this build")
    for old in glob.glob(os.path.join(build, "meson-logs", f"bench-{SUITE}*.json")):
        os.remove(old)
    done = _meson(build, "--logbase", f"bench-{SUITE}", "--num-processes", "1")
    results = {}
    for path in glob.glob(os.path.join(build, "meson-logs", f"bench-{SUITE}*.json")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                one = json.loads(line)
                results[one["name"]] = one["result"]
    if len(results) < len(listed):
        raise StockError(f"only {len(results)} of {len(listed)} tests were run:\n"
                         + "\n".join((done.stdout + done.stderr).splitlines()[-8:]))
    return results, f"meson test -C {build} --suite {SUITE}"
