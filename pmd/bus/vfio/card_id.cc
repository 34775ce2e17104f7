#include "pmd/bus/vfio/card_id.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/mmio.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/borrowed_bar.hpp"

namespace rio::pmd::vfio {
namespace {

CardId read_words(Mmio bar) {
  CardId id;
  id.magic = bar.read32(regs::id::magic());
  id.hw_version = bar.read32(regs::id::hw_version());
  id.build = bar.read32(regs::id::build());
  return id;
}

int read_words_at(Kernel& kernel, void* va, CardId* out) {
  *out = read_words(Mmio(va, regs::kPageBytes));
  kernel.munmap(va, regs::kPageBytes);
  return 0;
}

int read_through_sysfs(const PciPaths& paths, Kernel& kernel, const PciCard& card, CardId* out) {
  const std::string path =
      paths.sysfs + "/bus/pci/devices/" + card.address + "/resource" + std::to_string(card.bar);
  const KernelFd fd(kernel, kernel.open(path, O_RDWR | O_SYNC));
  if (fd.get() < 0) {
    return fd.get();
  }
  void* va = nullptr;
  const int rc = kernel.mmap(nullptr, regs::kPageBytes, PROT_READ, MAP_SHARED, fd.get(), 0, &va);
  return rc != 0 ? rc : read_words_at(kernel, va, out);
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
      read_text(kernel, folder + "/power_state", &state) == 0 && state == "D0" &&
      config.get() >= 0 &&
      kernel.read(config.get(), &command, sizeof(command), PCI_COMMAND) == sizeof(command) &&
      (command & PCI_COMMAND_MEMORY) != 0;
  return !awake;
}

}  // namespace

bool CardId::is_card() const {
  return magic == regs::kMagic;
}

bool CardId::all_ones() const {
  return magic == regs::kAllOnes;
}

int read_card_id(const PciPaths& paths, Kernel& kernel, const PciCard& card, CardId* out) {
  if (card.bar_bytes[static_cast<size_t>(card.bar)] < regs::kPageBytes) {
    return -ENXIO;
  }
  CardId id;
  int rc = read_through_sysfs(paths, kernel, card, &id);
  void* va = nullptr;
  if (rc != 0 && card.driver == kVfioDriver &&
      borrow_bar(paths, kernel, card, regs::kPageBytes, PROT_READ, &va) == 0) {
    rc = read_words_at(kernel, va, &id);
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
  *out = read_words(Mmio(backend->bar_va(), backend->bar_bytes()));
  return 0;
}

}  // namespace rio::pmd::vfio
