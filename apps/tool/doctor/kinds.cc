#include <algorithm>
#include <array>
#include <cassert>

#include "apps/tool/doctor/machine.hpp"

namespace rio::tool {
namespace {

constexpr Severity kWarning = Severity::kWarning;
constexpr Severity kError = Severity::kError;

constexpr auto kKinds = std::to_array<Kind>({
    // Is there a card, and does it answer?
    {"card.none", kError, "no card",
     "No PCI device has the ids of a message card, which are 10ee:7210 and the subsystem 10ee:5249 "
     "(lspci -nnv). It may be unpowered, without gateware when the machine started, or behind a "
     "link that did not train."},
    {"card.gone", kError, "the card's configuration space reads all ones",
     "Nothing answers at its address any more: it lost power, its link went down, or its FPGA was "
     "reprogrammed. Every read of it gives all ones, and what is made of them misleads."},
    {"card.all-ones", kError, "the card's registers read all ones",
     "Configuration space answers but the BAR does not: the FPGA was reprogrammed since the "
     "machine looked last and forgot where its BAR is, or the gateware's bus hangs."},
    {"card.gateware", kError, "the card has another gateware",
     "The PCI ids are those of a message card but the BAR does not begin with its magic word."},
    {"card.edition", kError, "the card's gateware is of an earlier edition of the contract",
     "The layout and meaning of registers changed between the editions, so this driver does not "
     "open the card. A later edition only adds, and is taken."},
    {"bar.no-room", kError, "the BAR has no address",
     "The machine gave the BAR no room. Commonly the FPGA got a gateware with a larger BAR after "
     "the machine had started; the bridge above keeps the window that it had."},
    {"bar.decoding-off", kError, "the card does not answer to its BAR: memory decoding is off",
     "The memory bit in the command register is off although a driver has the card awake. Reads of "
     "the BAR give all ones. A reset by something other than the driver does this."},
    {"bar.bus-master-off", kError, "the card may not reach memory: bus mastering is off",
     "A program uses the card but the bus master bit is off, so no descriptor is fetched and no "
     "completion written: traffic stands still without an error. A reset under the program does "
     "it."},
    // The link
    {"link.width", kWarning, "the PCIe link has fewer lanes than it could",
     "Card and slot both have more lanes than the link trained. Bandwidth is cut in proportion. A "
     "bad contact, a riser, or a gateware that was loaded too late."},
    {"link.speed", kWarning, "the PCIe link is slower than it could be",
     "Card and slot both can do a higher speed than the link trained."},
    {"link.slot", kWarning, "the slot is narrower or slower than the card",
     "The link does all that the slot can, and the card could do more."},
    {"link.aspm", kWarning, "the PCIe link may sleep",
     "With active-state power management the link sleeps between messages, and wakes in some "
     "microseconds: spikes of latency after each pause."},
    {"link.errors", kWarning, "the card has told of uncorrectable PCIe errors",
     "The advanced error reporting registers hold errors since they were last cleared. Completion "
     "time-outs and unsupported requests are why transfers end without an answer."},
    {"pcie.mps", kError, "card and bridge disagree on the largest payload",
     "If one side sends larger packets than the other takes, the packets are errors; that happens "
     "to a card that was plugged or reprogrammed after the machine set its bridges up."},
    {"pcie.mrrs", kWarning, "the card may only read in small pieces",
     "The largest read request is below 512 bytes, so fetching messages takes more round trips to "
     "memory than it needs."},
    // Driver and IOMMU
    {"bind.module", kError, "the driver that the card wants is not loaded",
     "The card can only be bound to a driver that the kernel has."},
    {"bind.none", kError, "the card has no driver",
     "A program can open the card through vfio-pci or uio_pci_generic only."},
    {"bind.kernel", kError, "a kernel driver has the card",
     "The card is bound to a driver other than vfio-pci, uio_pci_generic and igb_uio; programs "
     "cannot open it."},
    {"bind.override", kWarning, "the card will lose its driver at the next probe",
     "driver_override names another driver than the one that has the card."},
    {"bind.sleeps", kWarning, "the card is put to sleep while no program has it open",
     "vfio-pci lets an unused device enter D3: its registers read all ones until a program opens "
     "it, and many FPGAs come back without their settings, or not at all."},
    {"iommu.off-kernel", kWarning, "the machine has an IOMMU but the kernel does not use it",
     "Without it vfio-pci does not work, the card reaches all of memory, and programs need root."},
    {"iommu.off-firmware", kWarning, "no IOMMU",
     "The firmware tells of none: it is switched off there (VT-d, AMD-Vi), or the machine or its "
     "hypervisor has none."},
    {"iommu.no-group", kError, "vfio-pci has the card but it is in no IOMMU group",
     "VFIO opens groups; a card without one cannot be opened."},
    {"iommu.group-shared", kError,
     "other devices with kernel drivers are in the card's IOMMU group",
     "VFIO gives a group to a program only if no kernel driver uses any device of it."},
    {"iommu.blocks-uio", kError, "the IOMMU stops what the card does under UIO",
     "Under UIO the card is given physical addresses. The IOMMU translates this group, and knows "
     "none of them: every transfer of the card faults."},
    {"kernel.lockdown", kError, "the kernel is locked down, and the card is bound to UIO",
     "With Secure Boot the kernel lets no program map BARs through sysfs, nor write configuration "
     "space, which UIO needs."},
    // Rights
    {"rights.vfio-node", kError, "the IOMMU group has no node in /dev/vfio",
     "The card is bound to vfio-pci but /dev/vfio/N is missing: in a container, it was not given."},
    {"rights.vfio-group", kError, "the user may not open the card's IOMMU group",
     "/dev/vfio/N belongs to root until an administrator changes that."},
    {"rights.vfio-container", kError, "the user may not open /dev/vfio/vfio",
     "It gives no rights by itself; that is why it commonly is open to all."},
    {"rights.uio", kError, "UIO needs root",
     "Under UIO a program needs physical addresses, which the kernel shows to root only."},
    {"rights.memlock", kError, "the user may lock too little memory",
     "VFIO locks all memory that the card can reach, and counts it against the limit."},
    // Hugepages
    {"hugepages.none", kError, "no hugepages",
     "The driver and DPDK keep rings and buffers in hugepages."},
    {"hugepages.size", kError, "no hugepages of 2 MiB, only of another size",
     "The driver takes pages of 2 MiB where it runs without EAL."},
    {"hugepages.few", kWarning, "few hugepages",
     "Two cards with their rings and message pools want about 128 MiB."},
    {"hugepages.taken", kWarning, "all hugepages are taken",
     "There are enough, but programs (or files that dead programs left) have them all."},
    {"hugepages.node", kWarning, "no hugepages on the card's NUMA node",
     "Rings on another node cost each access of the card a way between the sockets."},
    {"hugepages.mount", kWarning, "hugetlbfs is not mounted",
     "DPDK programs without --in-memory need it."},
    {"hugepages.leftover", kWarning, "files of dead programs keep hugepages",
     "A DPDK program that was killed leaves its rtemap_* files, and their memory stays taken."},
    // Programs
    {"programs.two", kError, "several programs use one card",
     "UIO lets several programs open one card; each resets it under the other. DPDK's secondary "
     "processes are not meant."},
    {"dpdk.leftover", kWarning, "files of a dead DPDK program",
     "A secondary process finds the files of a primary that is gone, and hangs or crashes."},
    {"dpdk.missing", kWarning, "DPDK's libraries are missing",
     "Programs of DPDK do not start. The driver alone (libriopmd) works without."},
    {"dpdk.version", kError, "the driver was built for another version of DPDK",
     "DPDK's interfaces change with each yearly release; a driver of another one is not loaded, "
     "or crashes."},
    // CPUs
    {"numa.far", kWarning, "this process may only run far from the card",
     "All CPUs that it may use are on another NUMA node than the card: each access goes between "
     "the sockets."},
    {"cpu.not-isolated", kWarning, "no CPU near the card is isolated",
     "The scheduler puts other work onto the CPU of a polling thread: spikes of latency of "
     "milliseconds."},
    {"cpu.governor", kWarning, "CPUs change their frequency",
     "With a governor other than performance a CPU slows down between bursts."},
    {"cpu.idle-states", kWarning, "CPUs may sleep deeply",
     "A thread that waits for an interrupt wakes only after the CPU did: see the latency of the "
     "state. Polling threads suffer through the shared parts of the package."},
});

}  // namespace

std::span<const Kind> all_kinds() {
  return kKinds;
}

const Kind* find_kind(const std::string& id) {
  const auto kinds = all_kinds();
  const auto it =
      std::find_if(kinds.begin(), kinds.end(), [&id](const Kind& kind) { return id == kind.id; });
  return it == kinds.end() ? nullptr : &*it;
}

void Findings::add(const char* id, const std::string& card, const std::string& seen,
                   const std::string& remedy, const std::string& advice) {
  const Kind* kind = find_kind(id);
  assert(kind != nullptr && (!remedy.empty() || !advice.empty()));
  all.push_back({kind, card, seen, remedy, advice});
}

size_t Findings::count(Severity severity) const {
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [severity](const Finding& one) {
    return one.kind->severity == severity;
  }));
}

}  // namespace rio::tool
