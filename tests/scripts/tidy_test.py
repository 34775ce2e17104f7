#!/usr/bin/env python3
"""clang-tidy looks at the units that differ from a commit, in their source or in what they include."""
import os
import sys
import unittest
import unittest.mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import tidy  # noqa: E402  pylint: disable=wrong-import-position


class Tidy(unittest.TestCase):
    def test_differs(self):
        for changed, differs in (({"pmd/dev/tx_queue.cc"}, True), ({"pmd/dev/entry_window.hpp"}, True),
                                 ({"lib/tag/tagged_context.hpp"}, False), (set(), False)):
            self.assertEqual(tidy.differs("pmd/dev/tx_queue.cc", changed, {}), differs, changed)

    def test_installed_headers_are_named_without_their_folder(self):
        known = {"x.cc": {"x.cc", "*/riopmd.h"}, "*/riopmd.h": {"*/riopmd.h"}}
        self.assertTrue(tidy.differs("x.cc", {"pmd/api/riopmd.h"}, dict(known)))
        self.assertFalse(tidy.differs("x.cc", {"pmd/api/riopmd.hpp"}, dict(known)))

    def test_whole_where_the_rules_differ(self):
        for changed, lines, whole in (([".clang-tidy"], "", True), (["tests/.clang-tidy"], "", True),
                                      (["meson.build"], "+  '-Wshadow',", True), (["meson.build"], "-  license: 'BSD',", False),
                                      (["pmd/dev/meson.build", "scripts/lib/tidy.py"], "+ '-Wshadow'", False)):
            with unittest.mock.patch.object(tidy, "git", lambda *words, names="\n".join(changed), text=lines:
                                            text if "-U0" in words else names + "\n"):
                self.assertEqual(tidy.changed_since("x"), None if whole else set(changed), changed)

    def test_unknown_commit(self):
        self.assertIsNone(tidy.changed_since("no-such-commit"))

    def test_nearest_clean_commit(self):
        ahead = {"landed": 7, "origin/main": 3, "head": 0}  # commits of HEAD that the name has not

        def git(*words):
            if words[0] == "merge-base":
                return "" if words[2] in ahead else None
            return f"{ahead[words[2].removesuffix('..HEAD')]}\n"

        with unittest.mock.patch.object(tidy, "git", git):
            for names, nearest in ((("landed", "origin/main", "gone"), "origin/main"), (("landed", "head"), "landed"),
                                   ((None, "", "gone"), None), (("head",), None)):
                self.assertEqual(tidy.clean_commit(names), nearest, names)


if __name__ == "__main__":
    unittest.main()
