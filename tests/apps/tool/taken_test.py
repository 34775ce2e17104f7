"""A card is inspected, and the kernel takes its registers away. The system is a fake one whose BAR is a file
with the registers of an emulated card; the file becomes shorter."""
import json
import os
import struct
import subprocess
import unittest

import harness
from harness import CARD


class Taken(harness.Case):
    def fill_bar(self):
        """Makes the BAR's file. @return its path."""
        dump = os.path.join(self.system.root, "dump.json")
        done = harness.run("regs", "dump", "--file", dump, "--card", "emu:loop")
        self.assertEqual(done.code, 0, done)
        with open(dump, encoding="utf-8") as f:
            registers = json.load(f)["registers"]
        path = self.system.path(f"{self.system.folder(CARD)}/resource0")
        with open(path, "r+b") as f:
            for register in registers:
                f.seek(int(register["offset"], 16))
                f.write(struct.pack("<I", int(register["value"], 16)))
        return path

    def test_reports_it_and_ends(self):
        bar = self.fill_bar()
        command = [harness.PROGRAM, "--root", self.system.root, "counters", "--card", CARD, "--watch",
                   "--interval", "0.05"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            try:
                self.assertIn(CARD, watch.stdout.readline())
                os.truncate(bar, 0)
                _, err = watch.communicate(timeout=harness.TIMEOUT_S)
            finally:
                watch.kill()
        self.assertEqual(watch.returncode, 1, err)
        self.assertIn("error: the card's registers cannot be reached any more", err)
        self.assertIn("remedy:", err)


if __name__ == "__main__":
    unittest.main()
