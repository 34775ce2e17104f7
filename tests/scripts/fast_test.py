#!/usr/bin/env python3
"""The lists scripts/*.tests choose tests by the last line that matches, and leave in what no line names."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import fast_tests  # noqa: E402  pylint: disable=wrong-import-position


class Fast(unittest.TestCase):
    def test_last_line_decides(self):
        chosen = fast_tests.rules("# why\n\n- lib/*\n+ lib/msg/*\n- lib/msg/proof-*\n")
        for name, fast in (("base/number", True), ("lib/ofi/info", False), ("lib/msg/flow", True),
                           ("lib/msg/proof-grant", False)):
            self.assertEqual(fast_tests.is_fast(name, chosen), fast, name)

    def test_wrong_line(self):
        for text in ("lib/*\n", "+\n", "* lib\n"):
            with self.assertRaises(ValueError):
                fast_tests.rules(text)

    def test_file(self):
        with open(fast_tests.LIST, encoding="utf-8") as file:
            chosen = fast_tests.rules(file.read())
        self.assertTrue(fast_tests.is_fast("pmd_dev", chosen))
        self.assertFalse(fast_tests.is_fast("lib/msg/proof-grant", chosen))
        with open(os.path.join(fast_tests.SCRIPTS, "foreign.tests"), encoding="utf-8") as file:
            chosen = fast_tests.rules(file.read())
        for name in ("lib/msg/hostile", "relay", "lib/ofi/threads", "a new test"):
            self.assertTrue(fast_tests.is_fast(name, chosen), name)


if __name__ == "__main__":
    unittest.main()
