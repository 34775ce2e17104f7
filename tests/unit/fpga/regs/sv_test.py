#!/usr/bin/python3
"""Verilator elaborates the SystemVerilog package with the literals of rio_regs_pkg_test.sv, without a warning.

Exit code 77 (skipped) without verilator.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[3] / "fpga" / "regs" / "gen" / "rio_regs_pkg.sv"


def lint(test):
    return subprocess.run(["verilator", "--lint-only", "-Wall", "--top-module", "rio_regs_pkg_test", str(PACKAGE), str(test)],
                          capture_output=True, text=True, check=False)


class SvTest(unittest.TestCase):
    def test_literals_hold(self):
        done = lint(HERE / "rio_regs_pkg_test.sv")
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_a_wrong_literal_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rio_regs_pkg_test.sv"
            text = (HERE / "rio_regs_pkg_test.sv").read_text(encoding="utf-8")
            path.write_text(text.replace("32'h12000", "32'h12004"), encoding="utf-8")
            done = lint(path)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("qp", done.stderr)


if __name__ == "__main__":
    if shutil.which("verilator") is None:
        print("skipped: no verilator (apt-get install verilator)")
        sys.exit(77)
    unittest.main()
