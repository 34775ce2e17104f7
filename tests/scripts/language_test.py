#!/usr/bin/env python3
"""The language step refuses each of its cases, in each kind of file, and lets plain English through."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "lib", "language.py")
sys.path.insert(0, os.path.dirname(SCRIPT))
import language  # noqa: E402  pylint: disable=wrong-import-position


def rules(path, text):
    return [(line, rule) for line, rule, _ in language.findings(path, text)]


class Language(unittest.TestCase):
    def refused(self, path, text, line, rule):
        self.assertIn((line, rule), rules(path, text), text)

    def passes(self, path, text):
        self.assertEqual(rules(path, text), [], text)

    def test_comments(self):
        for text, rule in (("// what he has sent", "pronoun"), ("// Nobody waits.", "nobody"),
                           ("/// Who sends is asked.", "who"), ("// Full. Who waits goes on.", "who"),
                           ("// a frame for who polls", "who"), ("/* gone; who is left goes on */", "who"),
                           ("// For whoever comes next.", "whoever"), ("/// What a port sends.", "what"),
                           ("/// The same for one queue.", "same"), ("int a;  ///< likewise, in bytes", "same")):
            self.refused("a.cc", "int x;\n" + text + "\n", 2, rule)

    def test_comments_of_several_lines(self):
        self.refused("a.hpp", "// The ring is full.\n// Who waits\n// goes on.\n", 2, "who")
        self.passes("a.hpp", "// The user is the one\n// who knows it.\n")
        self.passes("a.hpp", "/// The caller counts\n/// the same bytes.\n")

    def test_questions_and_clauses_with_a_noun(self):
        for text in ("// Who else is there?", "// What is left? Nothing.", "/// The user who runs this.",
                     "// A thread that polls what it owns.", "// Does what the card asks.", "// The header."):
            self.passes("a.cc", text + "\n")

    def test_texts(self):
        self.refused("a.cc", 'log("the peer has lost " "his card");\n', 1, "pronoun")
        self.refused("a.cc", 'help("polls.  Who"\n     " has none waits.");\n', 1, "who")
        self.refused("a.py", 'print("nobody is there")\n', 1, "nobody")
        self.refused("a.sh", 'echo "what he did"\n', 1, "pronoun")
        self.passes("a.cc", 'map["his"] = he;\nint him = his(he);\n')

    def test_python(self):
        self.refused("a.py", 'def a():\n    """Waits.\n\n    Who is late is dropped."""\n', 4, "who")
        self.refused("a.py", "x = 1  # what he said\n", 1, "pronoun")
        self.refused("a.py", "def test_nobody_is_there(self):\n    pass\n", 1, "name")

    def test_pages(self):
        self.refused("a.md", "One line.\nThen what\nhe has.\n", 3, "pronoun")
        self.refused("a.md", "- Who reads this knows.\n", 1, "who")
        self.refused("a.md", "| a | b |\n|---|---|\n| x | What it is. |\n", 3, "what")
        self.passes("a.md", "# What it is\n\n**Who owns what.** A table.\n\n`his` and\n\n```\nhe said\n```\n\n"
                            "| what | Who owns it |\n|---|---|\n| x | y |\n")

    def test_names(self):
        self.refused("a.cc", "TEST(Port, NobodyWaits) {\n", 1, "name")
        self.refused("a.cc", "\nTEST_F(WhoGetsWhat, All) {\n", 2, "name")
        self.refused("meson.build", "test('for-him', exe)\n", 1, "name")
        self.refused("a.cc", "TEST(Port, WhatIsLost) {\n", 1, "name")
        self.passes("a.cc", "TEST(Port, TheHeaderIsWhole) {\n")

    def test_registers(self):
        self.refused("a.yaml", "- name: SEND\n  text: What to send.\n", 2, "what")

    def test_allow_list(self):
        with tempfile.TemporaryDirectory() as folder:
            page, allow = os.path.join(folder, "a.md"), os.path.join(folder, "allow")
            for name, text in ((page, "As he said.\n"), (allow, "# why\na.md: he said\n")):
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)

            def run(*args):
                return subprocess.run([sys.executable, SCRIPT, "--root", folder, *args], capture_output=True,
                                      text=True, timeout=60, check=False)

            got = run(page)
            self.assertEqual((got.returncode, got.stdout), (1, "a.md:1: pronoun: As he said.\n1 files, 1 findings\n"))
            got = run("--allow", allow, page)
            self.assertEqual((got.returncode, got.stdout), (0, "1 files, 0 findings\n"))
            subprocess.run(["git", "init", "-q", folder], check=True, timeout=60)
            got = run("--allow", allow)
            self.assertEqual((got.returncode, got.stdout), (1, "allow:2: unused: a.md: he said\n0 files, 1 findings\n"))


if __name__ == "__main__":
    unittest.main()
