"""A machine with a card, as a tree of files below a folder: sysfs, proc, dev.

FakeSystem(folder) is healthy: one card under vfio-pci, two NUMA nodes, everything set up. A test breaks one
part of it. While it is used as a context manager, a thread plays the kernel: it reacts to writes to bind,
unbind, drivers_probe, driver_override, reset, remove, rescan and nr_hugepages.
"""
import os
import shutil
import struct
import threading
import time

import pci_space

CARD, BRIDGE = "0000:03:00.0", "0000:00:01.0"
NIC, NIC_BRIDGE = "0000:04:00.0", "0000:00:02.0"
MAGIC = 0x52494F43
BAR_BYTES = 0x200000
PAGE_2M, PAGE_1G = "hugepages-2048kB", "hugepages-1048576kB"
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max locked memory         {0:<20} {0:<20} bytes
Max open files            1024                 1048576              files
"""


class FakeSystem:
    def __init__(self, root):
        self.root = str(root)
        self.resets = []      # (address, method), in order
        self.removed = {}     # address: its description, until a rescan
        self.rescan_fixes = True
        self.refuse_probe = False
        self.devices = {}
        self.known_pages = {}  # size: all, on node 0, on node 1
        self.lock = threading.RLock()
        self.stop = threading.Event()
        self.thread = None
        self._make_cpus()
        self._make_pci()
        self._make_hugepages()
        self._make_rest()

    # Files.

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Written in place: a concurrent reader never finds the file empty, as with the kernel's files.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
            f.truncate()
        return path

    def read(self, name):
        try:
            with open(self.path(name), "rb") as f:
                return f.read().decode(errors="replace").strip()
        except OSError:
            return ""

    def link(self, name, target):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path):
            os.remove(path)
        os.symlink(target, path)

    def read_bytes(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def remove(self, name):
        path = self.path(name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)

    # The healthy machine.

    def _make_cpus(self):
        cpu = "sys/devices/system/cpu"
        for name, text in (("online", "0-7"), ("possible", "0-7"), ("present", "0-7"), ("isolated", "5-7")):
            self.write(f"{cpu}/{name}", text + "\n")
        for c in range(8):
            mask = 0x0F if c < 4 else 0xF0
            for name, value in (("core_id", c), ("physical_package_id", c // 4), ("thread_siblings", f"{1 << c:08x}"),
                                ("core_siblings", f"{mask:08x}")):
                self.write(f"{cpu}/cpu{c}/topology/{name}", f"{value}\n")
            self.write(f"{cpu}/cpu{c}/online", "1\n")
            self.write(f"{cpu}/cpu{c}/cpufreq/scaling_governor", "performance\n")
            for state, (name, latency, disable) in enumerate((("POLL", 0, 0), ("C1", 2, 0), ("C6", 133, 1))):
                for key, value in (("name", name), ("latency", latency), ("disable", disable)):
                    self.write(f"{cpu}/cpu{c}/cpuidle/state{state}/{key}", f"{value}\n")
        node = "sys/devices/system/node"
        self.write(f"{node}/online", "0-1\n")
        self.write(f"{node}/possible", "0-1\n")
        for n in range(2):
            self.write(f"{node}/node{n}/cpumap", f"{0x0F << 4 * n:08x}\n")
            self.write(f"{node}/node{n}/cpulist", ("0-3", "4-7")[n] + "\n")
            self.write(f"{node}/node{n}/distance", ("10 21", "21 10")[n] + "\n")
            self.write(f"{node}/node{n}/meminfo", f"Node {n} MemTotal:  16000000 kB\n")

    def _make_pci(self):
        for driver in ("vfio-pci", "uio_pci_generic", "igb", "pcieport"):
            self.add_driver(driver)
        self.write("sys/bus/pci/drivers_probe", "")
        self.write("sys/bus/pci/rescan", "")
        self.add_device(BRIDGE, 0x8086, 0x2030, "pcieport", 1, bars={}, port=True, node=1)
        self.add_device(NIC_BRIDGE, 0x8086, 0x2031, "pcieport", 2, bars={}, port=True, node=0)
        self.add_device(CARD, 0x10EE, 0x7210, "vfio-pci", 7, under=BRIDGE, node=1)
        self.add_device(NIC, 0x8086, 0x1533, "igb", 8, under=NIC_BRIDGE, node=0, code=0x020000, home="igb")
        self.set_id(CARD, MAGIC, 0x00010203, 1767225600)

    def _make_hugepages(self):
        self.set_hugepages({0: 256, 1: 256})

    def _make_rest(self):
        self.write("dev/vfio/vfio", "")
        os.chmod(self.path("dev/vfio/vfio"), 0o666)
        self.write("proc/self/status", "Name:\trio-tool\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n")
        self.write("proc/self/limits", LIMITS.format("unlimited"))
        self.write("proc/mounts", "proc /proc proc rw 0 0\nnone /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n")
        os.makedirs(self.path("dev/hugepages"))
        self.write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n")
        self.write("sys/firmware/acpi/tables/DMAR", b"DMAR")
        self.write("etc/default/grub", 'GRUB_CMDLINE_LINUX="quiet iommu=off"\n')
        os.makedirs(self.path("etc/security/limits.d"))
        libraries = "usr/lib/x86_64-linux-gnu"
        self.write(f"{libraries}/librte_eal.so.23", b"\x7fELF")
        self.write(f"{libraries}/dpdk/pmds-23.0/librte_raw_rio.so", b"\x7fELF\0librte_eal.so.23\0libc.so.6\0")

    # Devices.

    def folder(self, address):
        return f"sys/bus/pci/devices/{address}"

    def up(self, address):
        """The path from a device's folder to sys."""
        return "../../../.." if self.devices[address]["under"] else "../../.."

    def add_driver(self, driver):
        for name in ("bind", "unbind", "new_id"):
            self.write(f"sys/bus/pci/drivers/{driver}/{name}", "")

    def add_device(self, address, vendor, device, driver="", group=-1, *, bars=None, under="", node=-1,
                   code=0x028000, home="", port=False):
        """home: the driver that the kernel itself would choose."""
        bars = {0: BAR_BYTES} if bars is None else bars
        self.devices[address] = dict(vendor=vendor, device=device, group=group, bars=bars, under=under, node=node,
                                     code=code, home=home, config=pci_space.space(vendor, device, port=port))
        self._plug(address)
        if driver:
            self.bind(address, driver)

    def _plug(self, address):
        what = self.devices[address]
        below = (f"{what['under']}/" if what["under"] else "") + address
        real = f"sys/devices/pci0000:00/{below}"
        for name, text in (("vendor", f"0x{what['vendor']:04x}"), ("device", f"0x{what['device']:04x}"),
                           ("subsystem_vendor", "0x10ee"), ("subsystem_device", "0x5249"),
                           ("class", f"0x{what['code']:06x}"), ("irq", "0"), ("numa_node", what["node"]),
                           ("power_state", "D0"), ("driver_override", "(null)"), ("reset_method", "flr bus"),
                           ("local_cpus", {0: "0000000f", 1: "000000f0"}.get(what["node"], "000000ff"))):
            self.write(f"{real}/{name}", f"{text}\n")
        for name in ("reset", "remove"):
            self.write(f"{real}/{name}", "")
        self.write(f"{real}/config", what["config"])
        self.link(self.folder(address), f"../../../devices/pci0000:00/{below}")
        self.set_bars(address, what["bars"])
        if what["group"] >= 0:
            group = f"sys/kernel/iommu_groups/{what['group']}"
            self.link(f"{real}/iommu_group", f"{self.up(address)}/kernel/iommu_groups/{what['group']}")
            self.link(f"{group}/devices/{address}", self.path(real))
            if not self.read(f"{group}/type"):
                self.write(f"{group}/type", "DMA-FQ\n")

    def set_bars(self, address, bars, start=0xE0000000):
        lines = []
        for bar in range(7):
            size = bars.get(bar, 0)
            lines.append(f"0x{start if size else 0:016x} 0x{start + size - 1 if size else 0:016x} "
                         f"0x{0x40200 if size else 0:016x}\n")
            if size:
                path = self.write(f"{self.folder(address)}/resource{bar}", b"")
                os.truncate(path, size)
        self.write(f"{self.folder(address)}/resource", "".join(lines))

    def set_id(self, address, magic, version=0, build=0, bar=0, edition=2):
        with open(self.path(f"{self.folder(address)}/resource{bar}"), "r+b") as f:
            f.write(struct.pack("<II", magic, edition << 8 | 1) + bytes(8) + struct.pack("<II", version, build))

    def set_config(self, address, **how):
        what = self.devices[address]
        port = what["vendor"] == 0x8086 and what["device"] in (0x2030, 0x2031)
        self.write(f"{self.folder(address)}/config", pci_space.space(what["vendor"], what["device"], port=port, **how))

    def bind(self, address, driver):
        self.link(f"{self.folder(address)}/driver", f"{self.up(address)}/bus/pci/drivers/{driver}")
        group = self.devices[address]["group"]
        if driver == "vfio-pci" and group >= 0:
            self.write(f"dev/vfio/{group}", "")
            os.chmod(self.path(f"dev/vfio/{group}"), 0o660)
        if driver in ("uio_pci_generic", "igb_uio"):
            os.makedirs(self.path(f"{self.folder(address)}/uio/uio0"), exist_ok=True)
            self.write("dev/uio0", "")

    def unbind(self, address):
        self.remove(f"{self.folder(address)}/driver")
        self.remove(f"{self.folder(address)}/uio")
        self.remove("dev/uio0")
        self.remove(f"dev/vfio/{self.devices[address]['group']}")

    def driver(self, address):
        try:
            return os.path.basename(os.readlink(self.path(f"{self.folder(address)}/driver")))
        except OSError:
            return ""

    def no_groups(self):
        """Makes the machine one without an IOMMU."""
        self.remove("sys/kernel/iommu_groups")
        os.makedirs(self.path("sys/kernel/iommu_groups"))
        for address, what in self.devices.items():
            self.remove(f"{self.folder(address)}/iommu_group")
            self.remove(f"dev/vfio/{what['group']}")

    # Memory and programs.

    def set_hugepages(self, nodes, size=PAGE_2M, free=None):
        """nodes: pages on each of the two nodes."""
        with self.lock:
            self.known_pages[size] = [sum(nodes.values()), nodes[0], nodes[1]]
            self._show_pages(size, free)

    def _show_pages(self, size, free=None):
        for folder, count in zip(self._pools(size), self.known_pages[size]):
            self.write(f"{folder}/nr_hugepages", f"{count}\n")
            self.write(f"{folder}/free_hugepages", f"{count if free is None else free}\n")

    def _pools(self, size):
        return [f"sys/kernel/mm/hugepages/{size}",
                *(f"sys/devices/system/node/node{n}/hugepages/{size}" for n in (0, 1))]

    def add_program(self, pid, name, files=(), cmdline=(), maps=()):
        for number, file in enumerate(files):
            self.link(f"proc/{pid}/fd/{number}", file)
        self.write(f"proc/{pid}/comm", name + "\n")
        self.write(f"proc/{pid}/cmdline", "\0".join((name, *cmdline)) + "\0")
        self.write(f"proc/{pid}/maps", "".join(f"7f0000000000-7f0000200000 rw-s 00000000 00:0f 9 {m}\n" for m in maps))

    def set_limit(self, text):
        self.write("proc/self/limits", LIMITS.format(text))

    # The kernel.

    def __enter__(self):
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stop.set()
        self.thread.join()

    def _run(self):
        while not self.stop.is_set():
            with self.lock:
                self._turn()
            time.sleep(0.001)

    def settle(self):
        """Returns once each write so far has taken effect."""
        with self.lock:
            self._turn()

    def _take(self, name):
        """Returns the text that was written to a control file, and empties the file."""
        try:
            with open(self.path(name), "r+b") as f:
                text = f.read().decode()
                if not text.endswith("\n"):
                    return ""
                f.truncate(0)
                return text.strip()
        except FileNotFoundError:
            return ""

    def _turn(self):
        drivers = self.path("sys/bus/pci/drivers")
        for driver in os.listdir(drivers) if os.path.isdir(drivers) else ():
            address = self._take(f"sys/bus/pci/drivers/{driver}/unbind")
            if address and self.driver(address) == driver:
                self.unbind(address)
        address = self._take("sys/bus/pci/drivers_probe")
        if address and not self.refuse_probe:
            self._probe(address)
        for address in list(self.devices):
            if self._take(f"{self.folder(address)}/reset"):
                self.resets.append((address, self.read(f"{self.folder(address)}/reset_method")))
            if self._take(f"{self.folder(address)}/remove"):
                self.unplug(address)
        if self._take("sys/bus/pci/rescan"):
            self._rescan()
        self._hugepages()

    def _probe(self, address):
        override = self.read(f"{self.folder(address)}/driver_override").replace("(null)", "")
        driver = override or self.devices[address]["home"]
        if driver and not self.driver(address):
            self.bind(address, driver)

    def unplug(self, address):
        self.removed[address] = self.devices.pop(address)
        real = os.path.realpath(self.path(self.folder(address)))
        self.remove(self.folder(address))
        shutil.rmtree(real)

    def _rescan(self):
        for address, what in list(self.removed.items()):
            self.devices[address] = self.removed.pop(address)
            if self.rescan_fixes:
                what["bars"] = what["bars"] or {0: BAR_BYTES}
                self._plug(address)
                self.set_id(address, MAGIC, 0x00010203)

    def _hugepages(self):
        for size, known in self.known_pages.items():
            texts = [self.read(f"{folder}/nr_hugepages") for folder in self._pools(size)]
            if not all(text.isdigit() for text in texts):
                continue  # a write is under way
            now = [int(text) for text in texts]
            if now == known:
                continue
            now = [now[0], (now[0] + 1) // 2, now[0] // 2] if now[0] != known[0] else [now[1] + now[2], *now[1:]]
            self.known_pages[size] = now
            self._show_pages(size)

    def reboot(self):
        """Restarts with the kernel's command line of /etc/default/grub."""
        line = self.read("etc/default/grub")
        on, off = (any(option + word in line for option in ("intel_iommu=", "amd_iommu="))
                   for word in ("on", "off"))
        if on and not off and " iommu=off" not in line:
            for address, what in self.devices.items():
                self.link(f"{self.folder(address)}/iommu_group",
                          f"{self.up(address)}/kernel/iommu_groups/{what['group']}")
                self.link(f"sys/kernel/iommu_groups/{what['group']}/devices/{address}", self.path(self.folder(address)))
        for option in line.replace('"', " ").split():
            if option.startswith("isolcpus="):
                self.write("sys/devices/system/cpu/isolated", option[9:] + "\n")
