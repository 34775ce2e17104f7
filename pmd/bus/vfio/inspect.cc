#include "pmd/bus/vfio/inspect.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/borrowed_bar.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {
namespace {

CardId read_words(Mmio bar) {
  CardId id;
  id.magic = bar.read32(regs::id::magic());
  id.hw_version = bar.read32(regs::id::hw_version());
  id.build = bar.read32(regs::id::build());
  return id;
}

int read_beside(const PciPaths& paths, Kernel& kernel, const PciCard& card, CardId* out) {
  KernelMapping page;
  bool opened = false;
  const int rc = map_bar_beside(paths, kernel, card, regs::kPageBytes, PROT_READ, &page, &opened);
  if (rc == 0) {
    *out = read_words(Mmio(page.va(), regs::kPageBytes));
  }
  return rc;
}

/// Whether vfio-pci may have powered the device down, or switched its memory off.
bool may_sleep(const PciPaths& paths, Kernel& kernel, const PciCard& card) {
  if (card.driver != kVfioDriver) {
    return false;
  }
  const std::string folder = paths.sysfs + "/bus/pci/devices/" + card.address;
  std::string state;
  const KernelFd config(kernel, kernel.open(folder + "/config", O_RDONLY));
  uint16_t command = 0;
  const bool awake =
      read_text(folder + "/power_state", &state, kernel) == 0 && state == "D0" &&
      config.get() >= 0 &&
      kernel.read(config.get(), &command, sizeof(command), PCI_COMMAND) == sizeof(command) &&
      (command & PCI_COMMAND_MEMORY) != 0;
  return !awake;
}

/// The cause and the remedy when a BAR cannot be mapped.
std::string why_not(const PciCard& card, int rc) {
  if (rc == -EPERM) {
    return "the kernel is locked down (Secure Boot): switch Secure Boot off to inspect registers "
           "beside "
           "a running program";
  }
  if (card.driver == kVfioDriver) {
    return "a program has it open, and the kernel reserves it for that one: run as root, or end "
           "the "
           "program: fuser -v /dev/vfio/" +
           std::to_string(card.iommu_group);
  }
  return rescan_command(card.address);
}

/// A card's BAR and nothing else.
class BarBus final : public Bus {
 public:
  BarBus(PciCard card, KernelMapping bar) : card_(std::move(card)), bar_(std::move(bar)) {}
  /// Use a card that had to be woken.
  void use(std::unique_ptr<Backend> backend) { backend_ = std::move(backend); }

  Mmio bar() override {
    return backend_ != nullptr ? backend_->bar() : Mmio(bar_.va(), bar_.len_bytes());
  }
  int dma_alloc(size_t, size_t, DmaMemory*) override { return -ENOTSUP; }
  void dma_free(const DmaMemory&) override {}
  int dma_map(void*, size_t, std::vector<IovaRun>*) override { return -ENOTSUP; }
  int dma_unmap(void*, size_t) override { return -ENOTSUP; }
  int irq_fd(uint32_t) override { return -ENOTSUP; }
  const std::string& name() const override { return card_.address; }
  int numa_node() const override { return card_.numa_node; }

 private:
  PciCard card_;
  KernelMapping bar_;
  std::unique_ptr<Backend> backend_;
};

/// Maps a card's BAR. @return as map_bar().
int map(const PciPaths& paths, Kernel& kernel, const PciCard& card, KernelMapping* out) {
  const uint64_t len_bytes = card.bar_bytes[static_cast<size_t>(card.bar)];
  if (len_bytes < regs::id::kSizeBytes) {
    base::log_error(
        "%s: BAR%d has %llu bytes: the gateware is no message card's, or the firmware gave the "
        "BAR no room: %s",
        card.address.c_str(), card.bar, static_cast<unsigned long long>(len_bytes),
        rescan_command(card.address).c_str());
    return -ENXIO;
  }
  bool opened = false;
  const int rc =
      map_bar_beside(paths, kernel, card, len_bytes, PROT_READ | PROT_WRITE, out, &opened);
  if (rc != 0) {
    base::log_error("%s: cannot %s %s: %s: %s", card.address.c_str(), opened ? "map" : "open",
                    bar_path(paths, card).c_str(), std::strerror(-rc),
                    opened ? why_not(card, rc).c_str() : "run with sudo");
  }
  return rc;
}

}  // namespace

int read_card_id(const PciPaths& paths, const PciCard& card, CardId* out, Kernel& kernel) {
  if (card.bar_bytes[static_cast<size_t>(card.bar)] < regs::kPageBytes) {
    return -ENXIO;
  }
  CardId id;
  const int rc = read_beside(paths, kernel, card, &id);
  if ((rc == 0 && !id.all_ones()) || !may_sleep(paths, kernel, card)) {
    if (rc == 0) {
      *out = id;
    }
    return rc;
  }
  std::unique_ptr<Backend> backend;
  if (open_vfio_backend(paths, kernel, card, &backend) != 0) {
    return -EAGAIN;
  }
  *out = read_words(backend->bar());
  return 0;
}

int map_bar(const std::string& address, const PciPaths& paths, std::unique_ptr<Bus>* out,
            Kernel& kernel) {
  PciCard card;
  if (const int rc = find_card(paths, address, &card); rc != 0) {
    return rc;
  }
  KernelMapping bar;
  if (const int rc = map(paths, kernel, card, &bar); rc != 0) {
    return rc;
  }
  auto bus = std::make_unique<BarBus>(card, std::move(bar));
  if (card.driver == kVfioDriver && bus->bar().read32(regs::id::magic()) == regs::kAllOnes) {
    // The card is powered down, or gone; if a program has it open, it is awake. Only opening it
    // tells.
    std::unique_ptr<Backend> backend;
    if (const int rc = open_vfio_backend(paths, kernel, card, &backend); rc != 0) {
      return rc;
    }
    bus->use(std::move(backend));
  }
  *out = std::move(bus);
  return 0;
}

}  // namespace rio::pmd::vfio
