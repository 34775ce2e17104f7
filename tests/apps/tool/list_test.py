"""rio-tool list, and the behaviour that all commands share: unknown commands, --json, exit codes."""
import os
import time
import unittest

import harness
from fake_system import MAGIC
from harness import BRIDGE, CARD, NIC


class List(harness.Case):
    def card(self, *options):
        result = self.good("--json", "list", *options)
        self.assertEqual(len(result.json), 1, result)
        return result.json[0]

    def test_everything_known_is_shown(self):
        card = self.card()
        self.assertEqual(card["address"], CARD)
        self.assertEqual((card["vendor"], card["device"]), (0x10EE, 0x7210))
        self.assertEqual((card["driver"], card["iommu_group"], card["numa_node"]), ("vfio-pci", 7, 1))
        self.assertEqual(card["link"], {"speed": "8 GT/s", "width": 8, "speed_max": "8 GT/s", "width_max": 8})
        self.assertEqual(card["bars"], [{"bar": 0, "address": 0xE0000000, "bytes": 0x200000}])
        self.assertEqual(card["gateware"], "1.2.3")

    def test_an_earlier_edition_is_named(self):
        self.system.set_id(CARD, MAGIC, 0x00010203, edition=1)
        self.assertEqual(self.card()["gateware"], "1.2.3, edition 1")
        self.system.set_id(CARD, MAGIC, 0x00010203, edition=3)
        self.assertEqual(self.card()["gateware"], "1.2.3")

    def test_text(self):
        out = self.good("list").out
        for word in (CARD, "10ee:7210", "vfio-pci", "7", "8 GT/s x8", "0: 2 MiB", "1.2.3"):
            self.assertIn(word, out)
        self.assertNotIn(NIC, out)

    def test_link_compared_to_the_maximum(self):
        self.system.set_config(CARD, speed=(1, 3), width=(4, 8))
        self.assertIn("2.5 GT/s x4 of 8 GT/s x8", self.good("list").out)

    def test_verbose(self):
        card = self.card("-v")
        self.assertEqual(card["bridge"], BRIDGE)
        self.assertEqual(card["cpus"], "4-7")  # chosen by hwloc
        self.assertEqual(card["built"], "2026-01-01T00:00:00Z")
        caps = card["capabilities"]
        self.assertEqual(caps["largest payload"], "256 bytes (card can 512, bridge 256)")
        self.assertEqual(caps["largest read request"], "512 bytes")
        self.assertEqual(caps["relaxed ordering"], "allowed")
        self.assertEqual(caps["error reporting"], "AER, no uncorrectable errors")
        self.assertEqual(card["wrong"], [])

    def test_verbose_says_what_is_wrong(self):
        self.system.set_config(CARD, payload=128, request=128, errors=1 << 14, relaxed=False, aer=True)
        card = self.card("-v")
        self.assertEqual([one["id"] for one in card["wrong"]], ["link.errors", "pcie.mps", "pcie.mrrs"])
        self.assertEqual(card["capabilities"]["error reporting"], "AER: CmpltTO")
        self.assertEqual(card["capabilities"]["relaxed ordering"], "off")
        self.assertIn("wrong: card and bridge disagree", self.good("list", "-v").out)
        self.system.set_config(CARD, aer=False)
        self.assertEqual(self.card("-v")["capabilities"]["error reporting"], "none (no AER)")

    def test_asleep_gone_and_without_room(self):
        self.system.write(f"{self.system.folder(CARD)}/power_state", "D3hot\n")
        self.assertEqual(self.card()["gateware"], "asleep")
        self.system.write(f"{self.system.folder(CARD)}/power_state", "D0\n")
        self.system.set_id(CARD, 0xFFFFFFFF)
        self.assertEqual(self.card()["gateware"], "no answer")
        self.system.write(f"{self.system.folder(CARD)}/config", b"\xff" * 4096)
        self.assertIsNone(self.card()["link"])
        self.assertIn("all ones", self.good("list", "-v").out)
        self.system.write(f"{self.system.folder(CARD)}/resource",
                          "0x0000000000000000 0x00000000001fffff 0x0000000020040200\n")
        self.assertIn("0: 2 MiB without address", self.good("list").out)

    def test_several_and_none(self):
        self.system.add_device("0000:05:00.0", 0x10EE, 0x7210)
        self.assertEqual([c["address"] for c in self.good("--json", "list").json], [CARD, "0000:05:00.0"])
        with self.system.lock:
            self.system.unplug(CARD)
            self.system.unplug("0000:05:00.0")
        self.assertEqual(self.good("list").out, "no cards\n")
        self.assertEqual(self.good("--json", "list").json, [])

    def test_foreign_bytes(self):
        # With any bytes in the tree there is an answer or an error, and no crash.
        texts = (b"", b"\n", b"\xff" * 300, b"-1\n", b"0x\n", b"99999999999999999999999\n", b"a" * 5000,
                 b"0xffffffffffffffff 0x0000000000000000 0xffffffffffffffff\n" * 9, b"\0" * 64)
        names = ("resource", "config", "power_state", "driver_override", "numa_node", "class", "vendor", "device",
                 "local_cpus")
        for name in names:
            for text in texts:
                with self.subTest(name=name, text=text[:20]):
                    self.system.write(f"{self.system.folder(CARD)}/{name}", text)
                    for options in (("list", "-v"), ("doctor",)):
                        self.assertIn(harness.run(*options, system=self.system).code, (0, 1, 3))
            self.system.unbind(CARD)
            with self.system.lock:
                self.system.unplug(CARD)
                self.system._rescan()
        for name in ("proc/self/status", "proc/self/limits", "proc/mounts", "sys/devices/system/cpu/isolated",
                     "sys/kernel/security/lockdown", "sys/devices/system/node/node0/distance",
                     "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"):
            for text in texts:
                self.system.write(name, text)
                self.assertIn(harness.run("doctor", "--user", "nobody", system=self.system).code, (0, 1, 3))

    def test_files_of_other_kinds(self):
        # A copy of a system may hold anything in a file's place: a pipe, or a file without an end.
        folder = self.system.folder(CARD)
        for name in (f"{folder}/power_state", f"{folder}/driver_override", "proc/self/status", "proc/self/limits",
                     "sys/kernel/security/lockdown", "sys/kernel/iommu_groups/7/type", "proc/7000812/maps"):
            self.system.add_program(7000812, "other", files=["/dev/vfio/7"])
            path = self.system.path(name)
            for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path), os.mkdir):
                with self.subTest(name=name, make=make), self.system.lock:
                    self.system.remove(name)
                    make(path)
                    for options in (("list", "-v"), ("doctor",)):
                        self.assertIn(harness.run(*options, system=self.system).code, (0, 3))
                    self.system.remove(name)
                    self.system.write(name, "")

    def test_capability_lists_that_loop(self):
        data = bytearray(self.system.read_bytes(f"{self.system.folder(CARD)}/config"))
        for pointer in (0x40, 0x00, 0xFC, 0xFF, 0x3C):
            data[0x41] = pointer
            for extended in (0x1001, 0xFFC1, 0x0000, 0x1041):
                data[0x100:0x104] = (0x0001 | 1 << 16 | (extended >> 4 & 0xFFC) << 20).to_bytes(4, "little")
                self.system.write(f"{self.system.folder(CARD)}/config", bytes(data))
                self.assertEqual(harness.run("list", "-v", system=self.system).code, 0)
        # There is no room for the structure at the very end, so it is ignored.
        end = bytearray(4096)
        end[0:4] = data[0:4]
        end[6], end[0x34], end[0xFC], end[0xFD] = 0x10, 0xFC, 0x10, 0
        self.system.write(f"{self.system.folder(CARD)}/config", bytes(end))
        self.assertIn("no PCI Express", self.good("list", "-v").out)

    def test_quick(self):
        # The limit is far above the usual time (the benchmark measures that): only a hang fails.
        start = time.monotonic()
        self.good("list")
        self.assertLess(time.monotonic() - start, 30)


class Shared(harness.Case):
    def test_unknown_command_is_named_with_the_nearest_one(self):
        for wrong, meant in (("lsit", "list"), ("docter", "doctor"), ("hugepage", "hugepages"), ("unbindd", "unbind")):
            self.refused(wrong, names=[f'"{wrong}"', f'"{meant}"'], code=2)
        result = self.refused("nonsense", names=['"nonsense"', "rio-tool --help"], code=2)
        self.assertNotIn("did you mean", result.err)

    def test_no_command(self):
        result = harness.run()
        self.assertEqual(result.code, 2, result)
        self.assertIn("rio-tool: error: A subcommand is required\nrio-tool: remedy: rio-tool --help", result.err)

    def test_options_stay_errors_of_their_command(self):
        result = harness.run("bind")
        self.assertEqual(result.code, 2, result)
        self.assertIn("rio-tool: error: address is required\nrio-tool: remedy: rio-tool bind --help", result.err)
        self.assertEqual(harness.run("list", "--nonsense").code, 2)


if __name__ == "__main__":
    unittest.main()
