"""scripts/bring-up on a fake system: it follows doctor's remedies, and does only what it may."""
import os
import subprocess
import unittest

import harness
from harness import CARD, NIC

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/bring-up")


class BringUp(harness.Case):
    def run_script(self, *options):
        return harness.Result(subprocess.run(
            [SCRIPT, "--root", self.system.root, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120, check=False, env=dict(os.environ, RIO_TOOL=harness.PROGRAM)))

    def test_from_nothing_to_ready(self):
        self.system.unbind(CARD)
        self.system.set_hugepages({0: 0, 1: 0})
        result = self.run_script("-n")
        self.assertEqual(result.code, 0, result)
        self.assertIn("rio-tool bind --driver vfio-pci", result.out)
        self.assertEqual(self.system.driver(CARD), "")
        result = self.run_script()
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.system.driver(CARD), "vfio-pci")
        self.assertIn("nothing found", result.out)

    def test_a_card_of_a_kernel_driver_is_left_alone(self):
        self.system.add_driver("xdma")
        self.system.unbind(CARD)
        self.system.bind(CARD, "xdma")
        result = self.run_script()
        self.assertEqual(result.code, 3, result)
        self.assertIn("bind.kernel", result.out)
        self.assertEqual((self.system.driver(CARD), self.system.driver(NIC)), ("xdma", "igb"))

    def test_ready_already(self):
        result = self.run_script()
        self.assertEqual((result.code, result.out), (0, "nothing found\n"), result)

    def test_a_failed_step_ends_the_script(self):
        self.system.unbind(CARD)
        self.system.refuse_probe = True
        result = self.run_script()
        self.assertEqual(result.code, 1, result)
        self.assertIn("did not take it", result.err)

    def test_wrong_command_lines(self):
        for options in (["--nonsense"], ["--root"]):
            self.assertEqual(self.run_script(*options).code, 2)


if __name__ == "__main__":
    unittest.main()
