#!/usr/bin/python3
"""tests/field/rows.tsv, and how scripts/lib/bench/field.py reads it.

    bench_field_test.py BUILD_FOLDER
"""
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
# pylint: disable=wrong-import-position
from bench import field  # noqa: E402

TABLE = os.path.join(ROOT, "tests", "field", "rows.tsv")
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else ""


def result(verdict, stdout=""):
    return {"name": "riopmd:unit / it", "result": verdict, "stdout": stdout}


class Table(unittest.TestCase):
    def test_each_row_has_a_test(self):
        rows = field.read_rows(TABLE)
        self.assertEqual([row for row in range(1, field.ROWS + 1) if row not in rows], [])

    def test_tests_are_in_the_build(self):
        with open(os.path.join(BUILD, "meson-info", "intro-tests.json"), encoding="utf-8") as file:
            tests = json.load(file)
        if any(test["cmd"][0].endswith("/lacking") for test in tests):
            self.skipTest("the build lacks a part, and its tests")
        names = {test["name"] for test in tests}
        wanted = {name for of_row in field.read_rows(TABLE).values() for name in of_row}
        self.assertEqual(sorted(wanted - names), [])


class Reading(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write(text)
            file.flush()
            return field.read_rows(file.name)

    def test_several_lines_a_row(self):
        self.assertEqual(self.read("# why\n\n1\ta\n21\tb/c\n1\td\n"), {1: ["a", "d"], 21: ["b/c"]})

    def test_bad_lines(self):
        for line in ("1 a", "1\t", "\ta", "0\ta", "22\ta", "x\ta", "1\ta "):
            with self.assertRaises(field.FieldError, msg=line):
                self.read(line + "\n")


class Faults(unittest.TestCase):
    def of(self, **results):
        rows = {row: ["good"] for row in range(1, field.ROWS + 1)}
        rows[3] = ["good", "other"]
        return field.faults(rows, {"good": result("OK"), **results})

    def test_all_tests_of_a_row_pass(self):
        self.assertEqual(self.of(other=result("OK")), {})

    def test_one_that_does_not(self):
        for verdict in ("FAIL", "TIMEOUT", "SKIP", "ERROR"):
            self.assertEqual(list(self.of(other=result(verdict))), [3], verdict)
        skipped = "[ RUN      ] A.b\nno shm\n[  SKIPPED ] A.b (0 ms)\n[       OK ] A.c (0 ms)\n"
        self.assertEqual(self.of(other=result("OK", skipped)), {3: "it: A.b was skipped: no shm"})

    def test_one_that_is_not_there(self):
        self.assertEqual(self.of(), {3: "other is not in this build"})
        self.assertEqual(len(field.faults({1: ["good"]}, {"good": result("OK")})), field.ROWS - 1)


class Counted(unittest.TestCase):
    def test_object_of_a_program(self):
        for code in (0, 1):
            self.assertEqual(field.counted(["sh", "-c", f"echo word; echo '{{\"a\": 1}}'; exit {code}"], 60), {"a": 1})

    def test_no_program_no_object_or_a_crash(self):
        for args in (["/nonexistent"], ["true"], ["sh", "-c", "echo '{}'; exit 2"], ["sh", "-c", "echo '{}'; kill $$"]):
            with self.assertRaises(field.FieldError, msg=args):
                field.counted(args, 60)


if __name__ == "__main__":
    unittest.main()
