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

}  // namespace rio::pmd::vfio
