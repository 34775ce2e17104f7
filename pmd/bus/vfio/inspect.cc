#include "pmd/bus/vfio/inspect.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "base/folder.hpp"
#include "base/log.hpp"
#include "base/number.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr size_t kBars = 6;
using BarRegisters = std::array<uint32_t, kBars>;

/// The entries of a folder whose names are numbers.
std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> numbers;
  for (const std::string& name : base::names_in(folder)) {
    unsigned number = 0;
    if (base::read_decimal(name, 0, INT_MAX, &number)) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

/// Reads where the card's BARs are from sysfs.
int bars_of(const PciPaths& paths, Kernel& kernel, const PciCard& card, BarRegisters* out) {
  const KernelFd config(kernel,
                        kernel.open(device_folder(paths, card.address) + "/config", O_RDONLY));
  if (config.get() < 0) {
    return config.get();
  }
  const ssize_t n = kernel.read(config.get(), out->data(), sizeof(*out), PCI_BASE_ADDRESS_0);
  return n == sizeof(*out) ? 0 : (n < 0 ? static_cast<int>(n) : -EIO);
}

/// Whether an open VFIO device is the one with these BARs. VFIO does not tell its address, but no
/// two devices have their BARs at one address, and programs on the host do not move them.
bool is_device(Kernel& kernel, int device, const BarRegisters& wanted) {
  vfio_region_info config{};
  BarRegisters bars{};
  return find_region(kernel, device, VFIO_PCI_CONFIG_REGION_INDEX, &config) == 0 &&
         kernel.read(device, bars.data(), sizeof(bars), config.offset + PCI_BASE_ADDRESS_0) ==
             sizeof(bars) &&
         bars == wanted;
}

/// A copy of the descriptor by which any program has the device open; empty if none has.
KernelFd device_of_others(const PciPaths& paths, Kernel& kernel, const BarRegisters& wanted) {
  for (const int pid : numbers_in(paths.proc)) {
    const std::string folder = paths.proc + "/" + std::to_string(pid) + "/fd";
    if (pid == getpid()) {
      continue;
    }
    for (const int number : numbers_in(folder)) {
      std::string target;
      if (kernel.readlink(folder + "/" + std::to_string(number), &target) != 0 ||
          target.find("[vfio-device]") == std::string::npos) {
        continue;
      }
      KernelFd copy(kernel, kernel.copy_fd(pid, number));
      if (copy.get() >= 0 && is_device(kernel, copy.get(), wanted)) {
        return copy;
      }
    }
  }
  return {};
}

/// Maps the beginning of a BAR through sysfs, or by borrow_bar() if the kernel reserves it for a
/// program that has it open. @param opened set: whether the file bar_path() could be opened.
/// @return 0, or the kernel's error. Logs nothing.
[[nodiscard]] int map_bar_beside(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                                 size_t len_bytes, int prot, KernelMapping* out, bool* opened) {
  const KernelFd fd(kernel, kernel.open(bar_path(paths, card), O_RDWR | O_SYNC));
  *opened = fd.get() >= 0;
  const int rc = *opened ? out->map(kernel, len_bytes, prot, fd.get(), 0) : fd.get();
  const bool borrowed = rc != 0 && card.driver == kVfioDriver &&
                        borrow_bar(paths, kernel, card, len_bytes, prot, out) == 0;
  return borrowed ? 0 : rc;
}

CardId read_words(Mmio bar) {
  return {bar.read32(regs::id::magic()), bar.read32(regs::id::block()),
          bar.read32(regs::id::hw_version()), bar.read32(regs::id::build())};
}

/// Whether vfio-pci may have powered the device down, or switched its memory off.
bool may_sleep(const PciPaths& paths, Kernel& kernel, const PciCard& card) {
  if (card.driver != kVfioDriver) {
    return false;
  }
  const std::string folder = device_folder(paths, card.address);
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
           "beside a running program";
  }
  if (card.driver == kVfioDriver) {
    return "a program has it open, and the kernel reserves it for that one: run as root, or end "
           "the program: fuser -v /dev/vfio/" +
           std::to_string(card.iommu_group);
  }
  return rescan_command(card.address);
}

/// A card's BAR and nothing else.
class BarBus final : public Bus {
 public:
  /// @param backend of a card that had to be woken, else null.
  BarBus(PciCard card, KernelMapping bar, std::unique_ptr<Backend> backend)
      : card_(std::move(card)), bar_(std::move(bar)), backend_(std::move(backend)) {}

  Mmio bar() override {
    return backend_ != nullptr ? backend_->bar() : Mmio(bar_.va(), bar_.len_bytes());
  }
  int dma_alloc(size_t, size_t, DmaMemory*) override { return -ENOTSUP; }
  void dma_free(const DmaMemory&) override {}
  const std::string& name() const override { return card_.address; }
  int numa_node() const override { return card_.numa_node; }

 private:
  PciCard card_;
  KernelMapping bar_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace

int borrow_bar(const PciPaths& paths, Kernel& kernel, const PciCard& card, size_t len_bytes,
               int prot, KernelMapping* out) {
  BarRegisters bars{};
  if (const int rc = bars_of(paths, kernel, card, &bars); rc != 0) {
    return rc;
  }
  const KernelFd device = device_of_others(paths, kernel, bars);
  if (device.get() < 0) {
    return -ENOENT;
  }
  vfio_region_info region{};
  const auto index = VFIO_PCI_BAR0_REGION_INDEX + static_cast<uint32_t>(card.bar);
  if (const int rc = find_region(kernel, device.get(), index, &region); rc != 0) {
    return rc;
  }
  if (region.size < len_bytes) {
    return -EINVAL;
  }
  return out->map(kernel, len_bytes, prot, device.get(), region.offset);
}

int read_card_id(const PciPaths& paths, const PciCard& card, CardId* out, Kernel& kernel) {
  if (card.bar_bytes[static_cast<size_t>(card.bar)] < regs::kPageBytes) {
    return -ENXIO;
  }
  CardId id;
  KernelMapping page;
  bool opened = false;
  const int rc = map_bar_beside(paths, kernel, card, regs::kPageBytes, PROT_READ, &page, &opened);
  if (rc == 0) {
    id = read_words(Mmio(page.va(), regs::kPageBytes));
  }
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
  const uint64_t len_bytes = card.bar_bytes[static_cast<size_t>(card.bar)];
  if (len_bytes < regs::id::kSizeBytes) {
    return refuse_bar(card, len_bytes);
  }
  KernelMapping bar;
  bool opened = false;
  if (const int rc =
          map_bar_beside(paths, kernel, card, len_bytes, PROT_READ | PROT_WRITE, &bar, &opened);
      rc != 0) {
    base::log_error("%s: cannot %s %s: %s: %s", card.address.c_str(), opened ? "map" : "open",
                    bar_path(paths, card).c_str(), std::strerror(-rc),
                    opened ? why_not(card, rc).c_str() : "run with sudo");
    return rc;
  }
  std::unique_ptr<Backend> backend;
  if (card.driver == kVfioDriver &&
      Mmio(bar.va(), len_bytes).read32(regs::id::magic()) == regs::kAllOnes) {
    // The card is powered down, or gone; if a program has it open, it is awake. Only opening it
    // tells.
    if (const int rc = open_vfio_backend(paths, kernel, card, &backend); rc != 0) {
      return rc;
    }
  }
  *out = std::make_unique<BarBus>(card, std::move(bar), std::move(backend));
  return 0;
}

}  // namespace rio::pmd::vfio
