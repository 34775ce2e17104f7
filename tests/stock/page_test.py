#!/usr/bin/python3
"""docs/stock.md names each test of the suite, and no other.

usage: page_test.py NAME...   NAME: the tests of the suite, without stock/
"""
import os
import re
import sys
import unittest

import stock

TESTS = sys.argv[1:]


class Page(unittest.TestCase):
    def test_rows(self):
        with open(os.path.join(stock.ROOT, "docs/stock.md"), encoding="utf-8") as text:
            rows = [line for line in text if line.startswith("| ") and "`stock/" in line]
        self.assertTrue(rows)
        named = [re.findall(r"`stock/([\w-]+)`", row) for row in rows]
        self.assertEqual(sorted({name for row in named for name in row}), sorted(TESTS))


unittest.main(argv=sys.argv[:1])
