#!/usr/bin/python3
"""The tool of the command line, verilator or yosys, accepts the SystemVerilog package without a warning, and finds
the literals of rio_regs_pkg_test.sv in it.

Exit code 77 (skipped) without the tool.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[3] / "fpga" / "regs" / "gen" / "rio_regs_pkg.sv"
TOP = "rio_regs_pkg_test"
# async2sync makes assertions of the checks that versions after 0.40 read.
PROOF = f"hierarchy -check -top {TOP}; proc; flatten; opt; async2sync; check -assert; sat -verify -prove-asserts {TOP}"
TOOL = sys.argv.pop() if len(sys.argv) > 1 else "verilator"


def run(test):
    command = {"verilator": ["verilator", "--lint-only", "-Wall", "--top-module", TOP, str(PACKAGE), str(test)],
               "yosys": ["yosys", "-q", "-e", ".*", "-p", f"read_verilog -sv -formal {PACKAGE} {test}; {PROOF}"]}
    return subprocess.run(command[TOOL], capture_output=True, text=True, check=False)


class SvTest(unittest.TestCase):
    def test_literals_hold(self):
        done = run(HERE / f"{TOP}.sv")
        # Verilator 5.032 ends with a report, whose lines begin so.
        said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("- ")]
        self.assertEqual((done.returncode, said), (0, []))

    def test_a_wrong_literal_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"{TOP}.sv"
            text = (HERE / f"{TOP}.sv").read_text(encoding="utf-8")
            path.write_text(text.replace("32'h12000", "32'h12004"), encoding="utf-8")
            done = run(path)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn({"verilator": "qp", "yosys": "proof did fail"}[TOOL], done.stderr)


if __name__ == "__main__":
    if shutil.which(TOOL) is None:
        print(f"skipped: no {TOOL} (apt-get install {TOOL})")
        sys.exit(77)
    unittest.main()
