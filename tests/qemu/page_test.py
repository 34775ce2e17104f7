"""page.py with example pages and differing output; and docs/bring-up.md has no unchecked block. Needs no guest."""
import os
import unittest

import page

MACHINES = ("guest", "host")
BRING_UP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/bring-up.md")


def block(*lines, tag="<!-- where: guest -->", kind="console"):
    return "\n".join(["A page.", "", tag, "```" + kind, *lines, "```", ""])


class Parse(unittest.TestCase):
    def refused(self, text, why):
        with self.assertRaises(page.PageError) as caught:
            page.parse(text, MACHINES)
        self.assertIn(why, str(caught.exception))

    def test_commands_and_their_output(self):
        steps = page.parse(block("$ one", "a", "", "$ two \\", "    more", "$ three"), MACHINES)
        self.assertEqual([(step.command, step.output) for step in steps],
                         [("one", ["a", ""]), ("two \\\n    more", []), ("three", [])])
        self.assertEqual([(step.where, step.line) for step in steps], [("guest", 5), ("guest", 8), ("guest", 10)])

    def test_nothing_is_left_unchecked(self):
        self.refused(block("$ one", tag=""), "line 4")
        self.refused(block("$ one", tag="<!-- where: moon -->"), "where")
        self.refused(block("$ one", tag="<!-- where: guest -->\n\nprose between"), "where")
        self.refused(block("$ one") + block("$ two", tag=""), "where")
        self.refused(block("rio-tool list", kind="sh"), "kind 'sh'")
        self.refused(block("output"), "before the first command")
        self.refused(block(), "without a command")
        self.refused(block("$ one", "…"), "nothing of its output is checked")
        self.refused(block("$ one")[:-4], "no end")

    def test_bring_up(self):
        with open(BRING_UP, encoding="utf-8") as f:
            steps = page.parse(f.read(), MACHINES)
        self.assertTrue(any("--verify" in step.command for step in steps))


class Difference(unittest.TestCase):
    def same(self, wanted, seen):
        self.assertEqual(page.difference(wanted, seen), "")

    def differs(self, wanted, seen):
        self.assertNotEqual(page.difference(wanted, seen), "")

    def test_exact(self):
        self.same(["a  b", "c"], ["a  b ", "c", "", ""])
        self.same([], [""])
        self.differs(["a  b"], ["a b"])
        self.differs(["a"], ["a", "b"])
        self.differs(["a", "b"], ["a"])
        self.differs([], ["a"])
        self.differs(["2 errors"], ["12 errors"])
        self.differs(["a.c"], ["abc"])

    def test_any_text(self):
        self.same(["took … s (…)"], ["took 1.5 s (a b)"])
        self.same(["pass     …       3 writes"], ["pass     0.04 s  3 writes"])
        self.differs(["took … s"], ["took 1.5 m"])
        self.differs(["took … s"], ["took 1", "s"])

    def test_any_lines(self):
        self.same(["…", "end"], ["end"])
        self.same(["…", "end"], ["1", "2", "end"])
        self.same(["begin", "…", "end", "…"], ["begin", "1", "end"])
        self.differs(["…", "end"], ["1", "an end"])
        self.differs(["begin", "…"], ["1", "begin"])

    def test_both_are_shown(self):
        shown = page.difference(["nothing found"], ["1 error"])
        self.assertIn("-nothing found", shown)
        self.assertIn("+1 error", shown)


if __name__ == "__main__":
    unittest.main(verbosity=2)
