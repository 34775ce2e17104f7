#!/usr/bin/env python3
"""Instruction counts that rise are refused, and those that fall are recorded."""
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import counts  # noqa: E402  pylint: disable=wrong-import-position


def record(**values):
    return {"counts": values, "no_gate": {"card": "looks at the clock"}}


class Counts(unittest.TestCase):
    def test_border(self):
        for value, recorded, above in ((37.2, 36.4, True), (36.9, 36.4, False), (40.5, 40, False), (40.51, 40, True),
                                       (1010, 1000, False), (1010.1, 1000, True), (10, 40, False)):
            self.assertEqual(counts.is_above(value, recorded), above, (value, recorded))

    def test_complaints(self):
        found = counts.complaints({"a": 50.0, "b": 41.0, "new": 3.0}, record(a=50.0, b=40.0, c=7.0))
        self.assertEqual([name for name, _ in found], ["b", "c"])
        self.assertIn("+2.5 %", found[0][1])
        self.assertIn("was not counted", found[1][1])

    def test_record_only_falls(self):
        new = counts.lowered({"a": 60.0, "b": 39.0, "new": 3.0, "card": 5.0}, record(a=50.0, b=40.0, c=7.0))
        self.assertEqual(new, {"a": 50.0, "b": 39.0, "c": 7.0, "new": 3.0})

    def test_parts(self):
        for name, part in (("dma.eal.instructions", "dma"), ("net.tx.instructions", "count"),
                           ("pmd.send.instructions", "count"), ("msg.match.post.exact.64.instructions", "--counts")):
            self.assertEqual([one[-1] for one in counts.part_of(name)], [part], name)

    def test_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            rows = [("a", "instructions/message"), ("b", "ns"), ("msg.peer.openmpi.send.1.instructions", "instructions/call"),
                    ("mpi.pingpong.instructions.shm", "instructions"), ("ratio", "ratio")]
            with open(path, "w", encoding="utf-8") as file:
                json.dump([{"id": name, "value": 1.5, "unit": unit} for name, unit in rows], file)
            self.assertEqual(counts.read(path), {"a": 1.5})
            self.assertEqual(counts.read(path + ".none"), {})

    def test_recorded_file(self):
        with open(counts.RECORD, encoding="utf-8") as file:
            recorded = json.load(file)
        self.assertEqual(set(recorded["built"]), {"compiler", "instruction set", "optimization"})
        self.assertEqual(recorded["tunables"], counts.PINNED)
        self.assertFalse(set(recorded["counts"]) & set(recorded["no_gate"]))
        self.assertTrue(all(counts.part_of(name) for name in recorded["counts"]))


if __name__ == "__main__":
    unittest.main()
