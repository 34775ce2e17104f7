"""rio-tool bind, unbind, reset and hugepages: the files that they write, and refused calls."""
import os
import unittest

import harness
from harness import CARD, NIC

UIO = "uio_pci_generic"


class Change(harness.Case):
    def writes(self, *options):
        """Returns (path below the root, text) of each write of a dry run, which must change nothing."""
        before = self.snapshot()
        result = self.good("-n", "--json", *options)
        self.system.settle()
        self.assertEqual(self.snapshot(), before)
        self.assertFalse(result.json["done"])
        return [(w["path"].removeprefix(self.system.root), w["text"]) for w in result.json["writes"]]

    def snapshot(self):
        files = {}
        for folder, _, names in os.walk(self.system.path("sys")):
            for name in names:
                path = os.path.join(folder, name)
                files[path] = os.readlink(path) if os.path.islink(path) else os.stat(path).st_mtime_ns
        return files

    def driver(self):
        return self.system.driver(CARD)


class Bind(Change):
    def test_changes_the_driver(self):
        result = self.good("bind", "--driver", UIO, CARD)
        self.assertEqual(self.driver(), UIO)
        self.assertEqual(result.out, f"{CARD}: vfio-pci -> {UIO}\n")
        self.assertEqual(self.system.read(f"{self.system.folder(CARD)}/driver_override"), UIO)
        self.good("bind", CARD)  # back again: vfio-pci, since the card has an IOMMU group
        self.assertEqual(self.driver(), "vfio-pci")

    def test_chooses_uio_without_a_group(self):
        self.system.unbind(CARD)
        self.system.no_groups()
        self.good("bind", "3:0.0")
        self.assertEqual(self.driver(), UIO)

    def test_dry_run_shows_the_exact_writes(self):
        device = f"/sys/bus/pci/devices/{CARD}"
        self.assertEqual(self.writes("bind", "--driver", UIO, CARD),
                         [(f"{device}/driver_override", UIO), (f"{device}/driver/unbind", CARD),
                          ("/sys/bus/pci/drivers_probe", CARD)])
        self.assertEqual(self.driver(), "vfio-pci")
        text = self.good("-n", "bind", "--driver", UIO, CARD).out
        self.assertEqual(text.splitlines()[0], f"echo {UIO} > {self.system.root}{device}/driver_override")

    def test_dry_run_works_in_a_shell(self):
        text = self.good("-n", "bind", "--driver", UIO, CARD).out
        for line in text.splitlines():
            self.assertEqual(harness.carry_out(self.system, line).code, 0)
        self.assertEqual(self.driver(), UIO)

    def test_bound_already(self):
        self.assertEqual(self.writes("bind", CARD), [(f"/sys/bus/pci/devices/{CARD}/driver_override", "vfio-pci")])

    def test_back_to_the_kernel(self):
        self.system.devices[CARD]["home"] = "igb"
        self.good("bind", "--driver", "default", CARD)
        self.system.settle()
        self.assertEqual(self.driver(), "igb")

    def test_several_and_one_is_wrong(self):
        self.system.add_device("0000:05:00.0", 0x10EE, 0x7210, home="")
        result = self.refused("bind", "--driver", UIO, CARD, "0000:09:00.0", "0000:05:00.0", names=["0000:09:00.0"])
        self.assertEqual((self.driver(), self.system.driver("0000:05:00.0")), (UIO, UIO), result)

    def test_refuses_devices_that_are_no_cards(self):
        for command in (["bind"], ["unbind"], ["reset", "--flr"]):
            self.refused(*command, NIC, names=[NIC, "network device", "8086:1533", "igb", "--force"])
            self.assertEqual(self.system.driver(NIC), "igb")
        self.good("bind", "--force", "--driver", "vfio-pci", NIC)
        self.assertEqual(self.system.driver(NIC), "vfio-pci")

    def test_refuses_a_card_in_use(self):
        self.system.add_program(7000812, "rio-testpmd", files=["/dev/vfio/7"])
        for command in (["bind", "--driver", UIO], ["unbind"], ["reset", "--flr"], ["reset", "--rescan"]):
            self.refused(*command, CARD, names=[CARD, "rio-testpmd", "7000812", "--force"])
        result = harness.run("--json", "bind", CARD, system=self.system)
        self.assertEqual((result.code, result.json["done"], result.json["cards"]), (1, False, []), result)
        self.assertEqual(self.driver(), "vfio-pci")
        # A program that maps the BAR through sysfs uses the card, too.
        self.system.remove("proc/7000812")
        self.system.add_program(7000813, "peek", maps=[f"/sys/devices/pci0000:00/0000:00:01.0/{CARD}/resource0"])
        self.refused("unbind", CARD, names=["peek"])
        self.good("unbind", "--force", CARD)

    def test_refuses_without_the_driver(self):
        self.refused("bind", "--driver", "igb_uio", CARD, names=["igb_uio", "modprobe igb_uio"])
        for name in ("../igb", "igb/.", "..", "."):
            self.refused("bind", "--driver", name, CARD, names=[f'"{name}"'])
        self.assertEqual(self.driver(), "vfio-pci")

    def test_a_driver_that_does_not_take_the_card(self):
        self.system.refuse_probe = True
        result = self.refused("bind", "--driver", UIO, CARD, names=[CARD, UIO, "dmesg"])
        self.assertEqual(self.driver(), "", result)

    def test_bad_addresses(self):
        for address in ("03:00", "0000:03:00.8", "", "0000:03:00.0/..", "x"):
            self.assertNotEqual(harness.run("bind", address, system=self.system).code, 0)

    def test_write_errors_are_reported_with_their_cause(self):
        override = self.system.path(f"{self.system.folder(CARD)}/driver_override")
        os.remove(override)
        self.refused("bind", "--driver", UIO, CARD, names=["driver_override", "No such file", "kernel has no such file"])
        os.mkdir(override)
        self.refused("bind", "--driver", UIO, CARD, names=["driver_override", "Is a directory"])


class Unbind(Change):
    def test_leaves_the_card_without_a_driver(self):
        device = f"/sys/bus/pci/devices/{CARD}"
        self.assertEqual(self.writes("unbind", CARD), [(f"{device}/driver_override", ""),
                                                       (f"{device}/driver/unbind", CARD)])
        self.good("unbind", CARD)
        self.assertEqual(self.driver(), "")
        self.good("unbind", CARD)  # a second time is no error


class Reset(Change):
    def test_function_level_and_bus(self):
        for option, method in (("--flr", "flr"), ("--bus", "bus")):
            self.good("reset", option, CARD)
            self.system.settle()
            self.assertEqual(self.system.read(f"{self.system.folder(CARD)}/reset_method"), "flr bus")
        device = f"/sys/bus/pci/devices/{CARD}"
        self.assertEqual(self.writes("reset", "--bus", CARD),
                         [(f"{device}/reset_method", "bus"), (f"{device}/reset", "1"),
                          (f"{device}/reset_method", "flr bus")])

    def test_a_method_that_does_not_exist(self):
        self.system.write(f"{self.system.folder(CARD)}/reset_method", "bus\n")
        self.refused("reset", "--flr", CARD, names=["flr", "bus", f"rio-tool reset --bus {CARD}"])
        self.system.write(f"{self.system.folder(CARD)}/reset_method", "\n")
        self.refused("reset", "--bus", CARD, names=["setpci -s 0000:00:01.0 BRIDGE_CONTROL=40:40"])
        self.system.remove(f"{self.system.folder(CARD)}/reset_method")
        self.refused("reset", "--flr", CARD, names=["reset_method"])
        self.assertEqual(self.system.resets, [])

    def test_a_card_without_a_bridge_can_be_rescanned(self):
        at_root = "0000:00:05.0"
        self.system.add_device(at_root, 0x10EE, 0x7210, "vfio-pci", 9)
        self.system.write(f"{self.system.folder(at_root)}/reset_method", "\n")
        for option in ("--flr", "--bus"):
            self.refused("reset", option, at_root, names=["no bridge above it", f"rio-tool reset --rescan {at_root}"])

    def test_rescan_finds_the_new_bar_and_keeps_the_driver(self):
        with self.system.lock:
            self.system.devices[CARD]["bars"] = {}
            self.system.set_bars(CARD, {})
        self.good("reset", "--rescan", CARD)
        self.assertEqual(self.driver(), "vfio-pci")
        self.assertEqual(self.good("--json", "list").json[0]["bars"][0]["bytes"], 0x200000)

    def test_rescan_dry_run(self):
        device = f"/sys/bus/pci/devices/{CARD}"
        self.assertEqual(self.writes("reset", "--rescan", CARD),
                         [(f"{device}/remove", "1"), ("/sys/bus/pci/rescan", "1"),
                          (f"{device}/driver_override", "vfio-pci"), ("/sys/bus/pci/drivers_probe", CARD)])

    def test_a_card_that_does_not_come_back(self):
        self.system.rescan_fixes = False
        self.refused("reset", "--rescan", CARD, names=["did not come back", "gateware"])

    def test_one_way_at_a_time(self):
        self.assertEqual(harness.run("reset", CARD, system=self.system).code, 2)
        self.assertEqual(harness.run("reset", "--flr", "--bus", CARD, system=self.system).code, 2)


class Hugepages(Change):
    def total(self, node=-1, page_bytes=2 << 20):
        pools = self.good("--json", "hugepages", "show").json
        return next(p["total"] for p in pools if p["node"] == node and p["page_bytes"] == page_bytes)

    def test_show(self):
        self.assertEqual(self.total(), 512)
        self.assertEqual(self.total(1), 256)
        self.assertEqual(self.good("hugepages").out, self.good("hugepages", "show").out)

    def test_set(self):
        self.assertEqual(self.good("hugepages", "64").out, "512 -> 64 hugepages of 2 MiB\n")
        self.system.settle()
        self.assertEqual((self.total(), self.total(0)), (64, 32))
        self.good("hugepages", "--node", "1", "100")
        self.system.settle()
        self.assertEqual((self.total(1), self.total()), (100, 132))

    def test_other_size(self):
        self.system.set_hugepages({0: 0, 1: 0}, size=harness.PAGE_1G)
        self.good("hugepages", "--size", "1G", "4")
        self.system.settle()
        self.assertEqual(self.total(page_bytes=1 << 30), 4)

    def test_dry_run(self):
        self.assertEqual(self.writes("hugepages", "--node", "0", "8"),
                         [("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "8")])

    def test_the_kernel_finds_less_room(self):
        # A file that accepts every write and keeps nothing.
        self.system.remove("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
        self.system.link("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "/dev/null")
        self.refused("hugepages", "64", names=["64", "0", "hugepages=64"])

    def test_more_than_the_machine_has(self):
        self.system.write("proc/meminfo", "MemTotal:        2097152 kB\nMemFree:   1 kB\n")
        for count in ("1025", "18446744073709551615"):
            self.refused("hugepages", count, names=[count, "MemTotal"])
            self.refused("-n", "hugepages", count, names=[count])
        self.assertEqual(self.total(), 512)
        self.good("hugepages", "1024")

    def test_refused(self):
        self.refused("hugepages", "--size", "4M", "8", names=["4 MiB", "hugepages show"])
        self.refused("hugepages", "--node", "5", "8", names=["node 5"])
        for bad in ("-1", "1.5", "many", "99999999999999999999"):
            self.assertEqual(harness.run("hugepages", bad, system=self.system).code, 2)
        for bad in ("0", "2X", "", "M", "99999999999999G"):
            self.assertEqual(harness.run("hugepages", "--size", bad, "8", system=self.system).code, 2)
        self.assertEqual(self.total(), 512)


if __name__ == "__main__":
    unittest.main()
