"""Each kind of finding: a way to provoke it, and the state after its remedy."""
import os
import struct

import pci_space
from fake_system import BRIDGE, CARD, MAGIC, NIC, PAGE_1G

FIRST, SECOND = 7000812, 7000900  # beyond any pid that a real program has


class Case:
    """One kind of finding. `provoke` breaks a healthy system. After the remedy was carried out, `after`
    simulates the rest that it asks for (a reboot, a new login). advice: the remedy is no command, only
    advice. also: ids of findings that cannot be avoided beside this one."""

    def __init__(self, provoke, *, after=None, advice=False, also=(), options=(), name="", severity="error"):
        self.provoke, self.after, self.advice = provoke, after, advice
        self.also, self.options, self.severity = set(also), list(options), severity
        self.name = name


def warning(provoke, **how):
    return Case(provoke, severity="warning", **how)


def unplugged(system):
    system.unplug(CARD)


def dead(system):
    system.write(f"{system.folder(CARD)}/config", b"\xff" * 4096)


def no_room(system):
    system.write(f"{system.folder(CARD)}/resource", "0x0000000000000000 0x00000000001fffff 0x0000000020040200\n" * 1)


def no_bar_at_all(system):
    system.write(f"{system.folder(CARD)}/resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 7)


def under_uio(system, translated=False):
    system.unbind(CARD)
    system.bind(CARD, "uio_pci_generic")
    if not translated:
        system.write("sys/kernel/iommu_groups/7/type", "identity\n")


def uio_decoding_off(system):
    under_uio(system)
    system.set_config(CARD, command=0x400)


def bus_master_off(system):
    system.add_program(FIRST, "rio-testpmd", files=["/dev/vfio/7"])
    system.set_config(CARD, command=0x402)


def retrained(system):
    """The bridge was told to retrain its link, which comes up at full width."""
    bridge, card = (f"{system.folder(address)}/config" for address in (BRIDGE, CARD))
    assert pci_space.word(system.read_bytes(bridge), pci_space.EXPRESS + 16) & 0x20
    system.write(card, pci_space.set_link(system.read_bytes(card), 3, 8))


def errors(system):
    system.set_config(CARD, errors=0x00104000)
    os.utime(system.path(f"{system.folder(CARD)}/config"), (0, 0))


def one_written_clears(system):
    """The config space is a file that keeps what was written; a card clears the bits that were written as 1."""
    assert os.path.getmtime(system.path(f"{system.folder(CARD)}/config")) > 0, "nothing was written"
    with open(system.path(f"{system.folder(CARD)}/config"), "r+b") as f:
        f.seek(pci_space.AER + 4)
        assert struct.unpack("<I", f.read(4))[0] == 0x00104000
        f.seek(pci_space.AER + 4)
        f.write(bytes(4))


def no_driver(system):
    system.unbind(CARD)


def no_module(system):
    system.unbind(CARD)
    system.remove("sys/bus/pci/drivers/vfio-pci")


def asleep(system):
    system.write("etc/modprobe.d/other.conf", "")
    system.write(f"{system.folder(CARD)}/power_state", "D3hot\n")


def awake(system):
    assert "disable_idle_d3=1" in system.read("etc/modprobe.d/riopmd.conf")
    system.write(f"{system.folder(CARD)}/power_state", "D0\n")


def kernel_driver(system):
    system.add_driver("xdma")
    system.unbind(CARD)
    system.bind(CARD, "xdma")


def no_iommu(system):
    system.unbind(CARD)
    system.no_groups()
    system.bind(CARD, "uio_pci_generic")


def no_iommu_firmware(system):
    no_iommu(system)
    system.remove("sys/firmware/acpi/tables/DMAR")


def no_iommu_amd(system):
    no_iommu_firmware(system)
    system.write("sys/firmware/acpi/tables/IVRS", b"IVRS")


def vfio_without_group(system):
    system.remove(f"{system.folder(CARD)}/iommu_group")
    system.remove(f"sys/kernel/iommu_groups/7/devices/{CARD}")


def neighbour(system):
    system.devices[NIC]["group"] = 7
    system.link(f"sys/kernel/iommu_groups/7/devices/{NIC}", system.path(system.folder(NIC)))


def locked_down(system):
    under_uio(system)
    system.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")


def container_closed(system):
    os.chmod(system.path("dev/vfio/7"), 0o666)
    os.chmod(system.path("dev/vfio/vfio"), 0o600)


def memlock(system):
    os.chmod(system.path("dev/vfio/7"), 0o666)
    system.set_limit("8388608")


def logged_in(system):
    """A new session gets the limits of limits.d."""
    folder = system.path("etc/security/limits.d")
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="ascii") as f:
            user, _, item, value = f.read().split()
        if user == "nobody" and item == "memlock":
            system.set_limit(value)


def only_large_pages(system):
    system.set_hugepages({0: 0, 1: 0})
    system.set_hugepages({0: 2, 1: 2}, size=PAGE_1G)


def leftover_pages(system):
    system.write("dev/hugepages/rtemap_0", "")
    system.write("dev/hugepages/my app;map_1", "")  # the user chooses the prefix freely
    system.write("dev/hugepages/used-map_2", "")
    system.add_program(FIRST, "rio-testpmd", maps=["/dev/hugepages/used-map_2"])


def two_programs(system):
    under_uio(system)
    system.add_program(FIRST, "rio-testpmd", files=["/dev/null", "/dev/uio0"])
    system.add_program(SECOND, "other", maps=[f"/sys/devices/pci0000:00/{BRIDGE}/{CARD}/resource0"])


def dpdk_leftover(system):
    for name in ("config", "mp_socket"):
        system.write(f"var/run/dpdk/rte/{name}", "")
        system.write(f"var/run/dpdk/alive/{name}", "")
    system.add_program(FIRST, "rio-testpmd", files=["/var/run/dpdk/alive/config"])


def no_dpdk(system):
    system.remove("usr/lib/x86_64-linux-gnu")


def other_dpdk(system):
    system.remove("usr/lib/x86_64-linux-gnu/librte_eal.so.23")
    system.write("usr/lib/x86_64-linux-gnu/librte_eal.so.24.0", b"\x7fELF")
    system.write("usr/lib/x86_64-linux-gnu/librte_eal.so.24", b"\x7fELF")


def governor(system):
    system.write("sys/devices/system/cpu/cpu6/cpufreq/scaling_governor", "powersave\n")


def idle_states(system):
    for cpu in (5, 7):
        system.write(f"sys/devices/system/cpu/cpu{cpu}/cpuidle/state2/disable", "0\n")


def config(**how):
    return lambda system: system.set_config(CARD, **how)


CASES = {
    "card.none": [Case(unplugged, after=lambda s: s.bind(CARD, "vfio-pci"))],
    "card.gone": [Case(dead)],
    "card.all-ones": [Case(lambda s: s.set_id(CARD, 0xFFFFFFFF))],
    "card.gateware": [Case(lambda s: s.set_id(CARD, 0x12345678), advice=True)],
    "card.edition": [Case(lambda s: s.set_id(CARD, MAGIC, edition=1), advice=True)],
    "bar.no-room": [Case(no_room), Case(no_bar_at_all, name="no BAR at all")],
    "bar.decoding-off": [Case(uio_decoding_off)],
    "bar.bus-master-off": [Case(bus_master_off)],
    "link.width": [warning(config(width=(4, 8)), after=retrained)],
    "link.speed": [warning(config(speed=(1, 3)), after=retrained)],
    "link.slot": [warning(lambda s: (s.set_config(BRIDGE, width=(4, 4)), s.set_config(CARD, width=(4, 8))), advice=True),
                  warning(config(speed=(3, 4)), advice=True, name="slower slot")],
    "link.aspm": [warning(config(aspm=3)), warning(config(aspm=2), name="L1 only")],
    "link.errors": [warning(errors, after=one_written_clears)],
    "pcie.mps": [Case(config(payload=128)), Case(config(payload=512), name="more than the bridge")],
    "pcie.mrrs": [warning(config(request=128))],
    "bind.module": [Case(no_module, also=["bind.none"])],
    "bind.none": [Case(no_driver)],
    "bind.kernel": [Case(kernel_driver)],
    "bind.override": [warning(lambda s: s.write(f"{s.folder(CARD)}/driver_override", "xdma\n"))],
    "bind.sleeps": [warning(asleep, after=awake)],
    "iommu.off-kernel": [warning(no_iommu, after=lambda s: s.reboot()),
                         warning(no_iommu_amd, after=lambda s: s.reboot(), name="AMD")],
    "iommu.off-firmware": [warning(no_iommu_firmware, advice=True)],
    "iommu.no-group": [Case(vfio_without_group)],
    "iommu.group-shared": [Case(neighbour)],
    "iommu.blocks-uio": [Case(lambda s: under_uio(s, translated=True))],
    "kernel.lockdown": [Case(locked_down)],
    "rights.vfio-node": [Case(lambda s: s.remove("dev/vfio/7"), advice=True)],
    "rights.vfio-group": [Case(lambda s: None, options=["--user", "nobody"])],
    "rights.vfio-container": [Case(container_closed, options=["--user", "nobody"])],
    "rights.uio": [Case(under_uio, options=["--user", "nobody"], after=lambda s: os.chmod(s.path("dev/vfio/7"), 0o666))],
    "rights.memlock": [Case(memlock, options=["--user", "nobody"], after=logged_in)],
    "hugepages.none": [Case(lambda s: s.set_hugepages({0: 0, 1: 0}))],
    "hugepages.size": [Case(only_large_pages)],
    "hugepages.few": [warning(lambda s: s.set_hugepages({0: 8, 1: 8}))],
    "hugepages.taken": [warning(lambda s: s.set_hugepages({0: 64, 1: 64}, free=0))],
    "hugepages.node": [warning(lambda s: s.set_hugepages({0: 512, 1: 0}))],
    "hugepages.mount": [warning(lambda s: s.write("proc/mounts", "proc /proc proc rw 0 0\n"))],
    "hugepages.leftover": [warning(leftover_pages)],
    "programs.two": [Case(two_programs)],
    "dpdk.leftover": [warning(dpdk_leftover)],
    "dpdk.missing": [warning(no_dpdk)],
    "dpdk.version": [Case(other_dpdk)],
    "numa.far": [warning(lambda s: s.write("proc/self/status", "Cpus_allowed_list:\t0-3\n"))],
    "cpu.not-isolated": [warning(lambda s: s.write("sys/devices/system/cpu/isolated", "\n"), after=lambda s: s.reboot()),
                         warning(lambda s: s.write("sys/devices/system/cpu/isolated", "1-2\n"),
                                 after=lambda s: s.reboot(), name="far from the card")],
    "cpu.governor": [warning(governor)],
    "cpu.idle-states": [warning(idle_states)],
}

