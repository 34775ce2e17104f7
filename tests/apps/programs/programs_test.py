"""Options that all programs have in common: --help and --version.

usage: programs_test.py VERSION PROGRAM...
"""
import os
import subprocess
import sys
import unittest

VERSION = sys.argv[1]
PROGRAMS = sys.argv[2:]
TIMEOUT_S = 60
COLUMNS = 100


class Programs(unittest.TestCase):
    def printed(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout

    def test_version(self):
        for program in PROGRAMS:
            self.assertEqual(self.printed(program, "--version"), f"{os.path.basename(program)} {VERSION}\n")

    def test_help(self):
        for program in PROGRAMS:
            text = self.printed(program, "--help")
            for word in ("--version", "Examples", "Exit code"):
                self.assertIn(word, text, program)
            for line in text.splitlines():
                self.assertTrue(line.isprintable(), (program, line))
                self.assertLessEqual(len(line), COLUMNS, (program, line))

    def test_an_unknown_option(self):
        for program in PROGRAMS:
            done = subprocess.run([program, "--", "--nonsense"] if "testpmd" in program else [program, "--nonsense"],
                                  capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            self.assertIn(done.returncode, (1, 2), program)
            self.assertIn("--nonsense", done.stderr)


unittest.main(argv=sys.argv[:1])
