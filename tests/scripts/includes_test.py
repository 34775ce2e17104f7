#!/usr/bin/env python3
"""check-includes refuses private headers and rows of the table that name what does not exist."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CHECK = os.path.join(ROOT, "scripts", "check-includes")
USER = "apps/common/registers.hpp"  # includes pmd/dev/reg_names.hpp


class Includes(unittest.TestCase):
    def run_on(self, change, *files):
        """@param change from the text of the table to another. @return exit code, errors."""
        with open(os.path.join(ROOT, "scripts", "includes.table"), encoding="utf-8") as table:
            text = change(table.read())
        with tempfile.NamedTemporaryFile("w", suffix=".table") as changed:
            changed.write(text)
            changed.flush()
            done = subprocess.run([CHECK, "--table", changed.name, *files], cwd=ROOT, capture_output=True,
                                  text=True, check=False)
        return done.returncode, done.stderr

    def test_the_tree(self):
        self.assertEqual(self.run_on(lambda text: text, USER), (0, ""))

    def test_private_header(self):
        code, errors = self.run_on(lambda text: text.replace(" reg_names.hpp", ""), USER)
        self.assertEqual(code, 1)
        self.assertIn("pmd/dev/reg_names.hpp is not public", errors)
        self.assertIn(USER, errors)

    def test_rows_of_nothing(self):
        for row, error in (("pmd/gone: pmd/dev", "no file in pmd/gone"),
                           ("pmd/dev: pmd/gone", "no file in pmd/gone"),
                           ("public pmd/dev: gone.hpp", "no public header pmd/dev/gone.hpp")):
            code, errors = self.run_on(lambda text, row=row: text + row + "\n")
            self.assertEqual(code, 1)
            self.assertIn(error, errors)

    def test_bad_row(self):
        code, errors = self.run_on(lambda text: text + "public: a.hpp b\nx y z: w\n", USER)
        self.assertEqual(code, 1)
        self.assertIn("want 'folder [+dpdk]: folder...'", errors)


if __name__ == "__main__":
    unittest.main()
