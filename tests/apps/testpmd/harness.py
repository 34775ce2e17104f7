"""Runs rio-testpmd for its tests: on hugepages if there are enough, otherwise in ordinary memory."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["RIO_TESTPMD"]
TIMEOUT_S = 60


def free_hugepages():
    try:
        with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", encoding="ascii") as f:
            return int(f.read())
    except (OSError, ValueError):
        return 0


def memory():
    if os.geteuid() == 0 and free_hugepages() >= 64 and not os.environ.get("RIO_NO_HUGE"):
        return ["--in-memory"]
    return ["--no-huge", "-m", "256", f"--file-prefix=testpmd{os.getpid()}"]


def eal(ports=2, args="", lcores="0", wires=None):
    command = [PROGRAM, "-l", lcores, "--no-pci", "--iova-mode=va", "--no-telemetry", "--log-level=4"] + memory()
    for port in range(ports):
        wire = wires[port] if wires else "pair0"
        command += ["--vdev", f"raw_rio{port},wire={wire}{args}"]
    return command


class Result:
    """Result of a run: code, out, err, and json if it was asked for."""

    def __init__(self, done, results):
        self.code, self.out, self.err, self.json = done.returncode, done.stdout, done.stderr, results

    def __str__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def run(*options, stdin=None, **how):
    """Runs to the end. Keyword arguments as for eal()."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        json_options = [] if "-i" in options or "--json" in options else ["--json", path]
        command = eal(**how) + ["--", "--stats-period", "0", *json_options, *options]
        done = subprocess.run(command, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        results = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                results = json.load(f)
        return Result(done, results)


class Case(unittest.TestCase):
    """A test case with the checks that most tests share."""

    longMessage = True

    def good(self, *options, **how):
        """Runs with verification: every message must arrive, and every byte be right."""
        result = run("--verify", *options, **how)
        self.assertEqual(result.code, 0, result)
        for one in result.json["runs"]:
            verify = one["verify"]
            self.assertEqual(verify["errors"], 0, result)
            self.assertGreater(verify["bytes"], 0, result)
            self.assertEqual(one["driver"]["bar_reads"], 0, result)
            self.assertEqual(one["driver"]["bad_completions"], 0, result)
        return result

    def refused(self, *options, names, code=1, **how):
        """Runs and expects an immediate end, with an error on stderr that names all of `names`."""
        result = run(*options, **how)
        self.assertEqual(result.code, code, result)
        self.assertIn("error:", result.err, result)
        for name in names:
            self.assertIn(name, result.err, result)
        return result


def main():
    print("memory:", " ".join(memory()), file=sys.stderr)
    unittest.main(verbosity=1)
