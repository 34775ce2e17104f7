#!/usr/bin/env python3
"""contract_cases.py finds a statement without a case, and ids that do not fit."""
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lib" / "contract_cases.py"
PAGE = """# The contract
Not a statement.

## Rings
A ring is round. [R1] It turns [R2].

- [S0] has none, [a link](b.md) neither. [R3: no case, it cannot be seen]
| a table | is not one |

## Second edition
- No statement.
"""
CASES = """// R1, R2
// A comment.
TEST_P(Rings, Turn) {
"""


class ContractCases(unittest.TestCase):
    def run_on(self, page, cases):
        """@return exit code, output, errors"""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "tests" / "conformance").mkdir(parents=True)
            (root / "docs" / "card.md").write_text(page, encoding="utf-8")
            (root / "tests" / "conformance" / "a_test.cc").write_text(cases, encoding="utf-8")
            done = subprocess.run([SCRIPT, "--root", root, "--list"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_all_have_a_case(self):
        code, out, errors = self.run_on(PAGE, CASES)
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("R2   Rings.Turn\n", out)
        self.assertIn("3 statements, 2 with a case, 1 that no case can show", out)

    def test_mistakes_are_named(self):
        for page, cases, error in (
                (PAGE, CASES.replace("R1, R2", "R1"), "docs/card.md:5: no case shows [R2]"),
                (PAGE, CASES.replace("R1", "R1, R9"), "a_test.cc:1: Rings.Turn shows R9, which"),
                (PAGE, CASES.replace("R1", "R1, R3"), "docs/card.md:7: [R3] has a case"),
                (PAGE, CASES + "}\n// R1\n\n", "a_test.cc:5: ids without a case"),
                (PAGE.replace("[R2].", "[R1]."), CASES, "docs/card.md:5: [R1] is taken in line 5"),
                (PAGE.replace(" [R2].", "."), CASES, "docs/card.md:5: 'A ring is round.")):
            code, _, errors = self.run_on(page, cases)
            self.assertEqual(code, 1, error)
            self.assertIn(error, errors)


if __name__ == "__main__":
    unittest.main()
