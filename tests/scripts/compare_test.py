#!/usr/bin/env python3
"""tests/mpi/compare: Open MPI's own shared memory runs only where another output is not the recorded one."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOADER = importlib.machinery.SourceFileLoader("compare", os.path.join(ROOT, "tests", "mpi", "compare"))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", LOADER))
LOADER.exec_module(compare)


class Compare(unittest.TestCase):
    def compared(self, outputs, record, *options):
        """Exit code, the transports that ran, and the record afterwards, of two ranks of a program."""
        ran = []

        def run(_mpirun, _program, _ranks, transport, _osc, _args):
            ran.append(transport)
            return outputs.get(transport, outputs["rio"])

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "outputs.json"
            file.write_text(json.dumps(record))
            with unittest.mock.patch.multiple(compare, RECORD=file, run=run), \
                    unittest.mock.patch.object(compare.shutil, "which", return_value="mpirun"), \
                    unittest.mock.patch.object(sys, "argv", ["compare", "--ranks", "2", *options, "mpi_some"]), \
                    contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                code = compare.main()
            return code, ran, json.loads(file.read_text())

    def test_recorded_output(self):
        known = {"some": {"2": "a"}}
        self.assertEqual(self.compared({"rio": (0, "a")}, known), (0, ["rio", "libfabric"], known))

    def test_another_release_prints_another_output(self):
        known = {"some": {"2": "old"}}
        self.assertEqual(self.compared({"rio": (0, "a"), "vader": (0, "a")}, known),
                         (0, ["rio", "libfabric", "vader"], known))

    def test_differences(self):
        for rio in ((0, "b"), (1, "a"), (-1, "a")):
            for known in ({}, {"some": {"2": "a"}}, {"some": {"4": "b"}}):
                code, ran, _ = self.compared({"rio": rio, "vader": (0, "a")}, known)
                self.assertEqual((code, sorted(ran)), (1, ["libfabric", "rio", "vader"]), (rio, known))

    def test_the_provider_alone_differs(self):
        outputs = {"rio": (0, "a"), "libfabric": (0, "b"), "vader": (0, "a")}
        self.assertEqual(self.compared(outputs, {"some": {"2": "a"}})[0], 1)

    def test_equal_failures_are_differences(self):
        self.assertEqual(self.compared({"rio": (1, "a"), "vader": (1, "a")}, {})[0], 1)

    def test_record(self):
        code, ran, record = self.compared({"rio": (0, "a"), "vader": (0, "a")}, {"some": {"2": "a", "4": "c"}}, "--record")
        self.assertEqual((code, sorted(ran), record), (0, ["libfabric", "rio", "vader"], {"some": {"2": "a", "4": "c"}}))
        code, _, record = self.compared({"rio": (0, "b"), "vader": (0, "b")}, {"some": {"2": "a"}}, "--record")
        self.assertEqual((code, record), (0, {"some": {"2": "b"}}))

    def test_nothing_wrong_is_recorded(self):
        for rio, vader in (((0, "b"), (0, "a")), ((1, "c"), (1, "c"))):
            code, _, record = self.compared({"rio": rio, "vader": vader}, {"some": {"2": "old"}}, "--record")
            self.assertEqual((code, record), (1, {"some": {"2": "old"}}))


if __name__ == "__main__":
    unittest.main()
