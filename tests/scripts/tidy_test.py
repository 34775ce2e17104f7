#!/usr/bin/env python3
"""Which files differ from a commit, in their text or in what they include, and where clang-tidy looks then."""
import os
import sys
import unittest
import unittest.mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
# pylint: disable=wrong-import-position
import changed  # noqa: E402
import tidy  # noqa: E402


class Changed(unittest.TestCase):
    def test_differs(self):
        for files, differs in (({"pmd/dev/tx_queue.cc"}, True), ({"pmd/dev/entry_window.hpp"}, True),
                                 ({"lib/tag/tagged_context.hpp"}, False), (set(), False)):
            self.assertEqual(changed.differs("pmd/dev/tx_queue.cc", files, {}), differs, files)

    def test_installed_headers_are_named_without_their_folder(self):
        known = {"x.cc": {"x.cc", "*/riopmd.h"}, "*/riopmd.h": {"*/riopmd.h"}}
        self.assertTrue(changed.differs("x.cc", {"pmd/api/riopmd.h"}, dict(known)))
        self.assertFalse(changed.differs("x.cc", {"pmd/api/riopmd.hpp"}, dict(known)))

    def test_whole_where_the_rules_differ(self):
        for files, lines, whole in (([".clang-tidy"], "", True), (["tests/.clang-tidy"], "", True),
                                    (["meson.build"], "+  '-Wshadow',", True), (["meson.build"], "-  license: 'BSD',", False),
                                    (["pmd/dev/meson.build", "scripts/lib/tidy.py"], "+ '-Wshadow'", False)):
            with unittest.mock.patch.object(changed, "git", lambda *words, names="\n".join(files), text=lines:
                                            text if "-U0" in words else names + "\n"):
                self.assertEqual(changed.changed_since("x"), None if whole else set(files), files)

    def test_unknown_commit(self):
        self.assertIsNone(changed.changed_since("no-such-commit"))

    def test_nearest_clean_commit(self):
        ahead = {"landed": 7, "origin/main": 3, "head": 0}  # commits of HEAD that the name has not

        def git(*words):
            if words[0] == "merge-base":
                return "" if words[2] in ahead else None
            return f"{ahead[words[2].removesuffix('..HEAD')]}\n"

        with unittest.mock.patch.object(changed, "git", git):
            for names, nearest in ((("landed", "origin/main", "gone"), "origin/main"), (("landed", "head"), "landed"),
                                   ((None, "", "gone"), None), (("head",), None)):
                self.assertEqual(changed.clean_commit(names), nearest, names)


class Tidy(unittest.TestCase):
    UNITS = ("pmd/dev/tx_queue.cc", "pmd/dev/tx_queue_slow.cc", "pmd/dev/tx_slots.cc", "base/bus_error.cc")

    def looked_at(self, *files):
        return tidy.those_to_look_at(self.UNITS, set(files))

    def test_a_source_that_differs(self):
        self.assertEqual(self.looked_at("pmd/dev/tx_slots.cc", "docs/card.md"), {"pmd/dev/tx_slots.cc"})

    def test_one_unit_for_a_header(self):
        self.assertEqual(self.looked_at("pmd/dev/tx_queue.hpp"), {"pmd/dev/tx_queue.cc"})
        self.assertEqual(self.looked_at("pmd/dev/tx_slots.cc", "pmd/dev/tx_queue.hpp"),
                         {"pmd/dev/tx_slots.cc", "pmd/dev/tx_queue.cc"})

    def test_a_unit_that_is_looked_at_anyway_covers_a_header(self):
        self.assertEqual(len(self.looked_at("pmd/dev/entry_window.hpp")), 1)
        self.assertEqual(self.looked_at("pmd/dev/tx_queue.cc", "pmd/dev/entry_window.hpp"), {"pmd/dev/tx_queue.cc"})

    def test_a_header_that_none_of_them_includes(self):
        self.assertEqual(self.looked_at("lib/tag/tagged_context.hpp"), set())


if __name__ == "__main__":
    unittest.main()
