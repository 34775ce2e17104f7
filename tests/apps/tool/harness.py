"""Runs rio-tool for its tests, on fake systems, and carries out its remedies there."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from fake_system import BRIDGE, CARD, NIC, PAGE_1G, FakeSystem

__all__ = ["BRIDGE", "CARD", "NIC", "PAGE_1G", "PROGRAM", "Case", "FakeSystem", "Result", "run", "carry_out"]

PROGRAM = os.environ["RIO_TOOL"]
TIMEOUT_S = 60

# Commands of remedies that only change files of the tree here.
PLAYED = r"""
modprobe() { mkdir -p "$R/sys/bus/pci/drivers/$1"; : > "$R/sys/bus/pci/drivers/$1/unbind"; }
mount() { echo "$3 ${4#"$R"} $2 rw 0 0" >> "$R/proc/mounts"; }
kill() { for p in "$@"; do rm -r "$R/proc/$p"; done; }
taskset() { printf 'Cpus_allowed_list:\t%s\n' "$2" > "$R/proc/self/status"; }
apt-get() { mkdir -p "$R/usr/lib"; : > "$R/usr/lib/librte_eal.so.23"; }
update-grub() { :; }
"""


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def run(*options, system=None):
    command = [PROGRAM] + (["--root", system.root] if system else []) + list(options)
    return Result(subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
                                 check=False))


def carry_out(system, command):
    """Runs a remedy as a user would type it, with the system's paths below its folder."""
    there = re.sub(r"(?<![\w/.])/(?=(sys|proc|dev|etc|usr|var|run)/)", system.root + "/", command)
    there = re.sub(r"\brio-tool ", f"{PROGRAM} --root {system.root} ", there)
    there = re.sub(r"\bsetpci ", f"setpci -A linux-sysfs -O sysfs.path={system.root}/sys/bus/pci ", there)
    script = f"set -e\nR={system.root}\n{PLAYED}\n{there}\n"
    done = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)
    system.settle()
    return Result(done)


class Case(unittest.TestCase):
    """A test case with a healthy system for each test."""

    longMessage = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.system = FakeSystem(folder.name)
        self.system.__enter__()
        self.addCleanup(self.system.__exit__)

    def good(self, *options):
        result = run(*options, system=self.system)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.err, "", result)
        return result

    def refused(self, *options, names, code=1):
        """Runs and expects an error and a remedy on stderr that name all of `names`."""
        result = run(*options, system=self.system)
        self.assertEqual(result.code, code, result)
        self.assertIn("error:", result.err, result)
        for name in names:
            self.assertIn(name, result.err, result)
        return result
