#!/usr/bin/env python3
"""scripts/pci-branches finds what it looks for in examples, and nothing in the driver."""
import importlib.machinery
import importlib.util
import os
import subprocess
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "pci-branches")


def places(text):
    loader = importlib.machinery.SourceFileLoader("pci_branches", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("pci_branches", loader))
    loader.exec_module(module)
    return [number for number, _ in module.places(text)]


class PciBranches(unittest.TestCase):
    def test_kinds_of_buses(self):
        for line in ("EmuBus* emu_ = nullptr;", "if (dynamic_cast<VfioBus*>(&bus)) {", "rte_pci_device* pci;",
                     '#include "pmd/bus/emu/emu_bus.hpp"', "if (id == regs::kPciIvshmemVendor) {"):
            self.assertEqual(places("\n" + line), [2], line)

    def test_decisions(self):
        for line in ("if (caps.is_model) {", "x = caps.is_model ? 1 : 2;", "while (a && !caps_.is_model) {"):
            self.assertEqual(places(line), [1], line)

    def test_what_is_no_place(self):
        for line in ("// EmuBus, if (caps.is_model)", '"an EmuBus";', "info.emulated = caps.is_model;",
                     "/* if (is_model)\n   EmuBus */", '#include "pmd/bus/bus.hpp"'):
            self.assertEqual(places(line), [], line)

    def test_driver(self):
        done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "0 places\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
