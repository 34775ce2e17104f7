#include "pmd/bus/vfio/bus_master.hpp"

#include <linux/pci_regs.h>

#include <cerrno>

namespace rio::pmd::vfio {
namespace {

constexpr uint16_t kGone = 0xFFFF;
constexpr int kNapsMax = 1000;
constexpr int kCapabilitiesMax = 48;  // as many as fit behind the header
constexpr uint16_t kHeaderBytes = 64;

int result(ssize_t n) {
  return n == sizeof(uint16_t) ? 0 : (n < 0 ? static_cast<int>(n) : -EIO);
}

/// Where the PCI Express capability is. @param out 0: the device has none.
int find_express(ConfigSpace& config, uint32_t* out) {
  *out = 0;
  uint16_t word = 0;
  int rc = config.read16(PCI_STATUS, &word);
  if (rc != 0 || (word & PCI_STATUS_CAP_LIST) == 0) {
    return rc;
  }
  rc = config.read16(PCI_CAPABILITY_LIST, &word);
  for (int i = 0; rc == 0 && i < kCapabilitiesMax; ++i) {
    const uint32_t at = word & 0xFCu;
    if (at < kHeaderBytes) {
      return 0;
    }
    rc = config.read16(at, &word);
    if ((word & 0xFF) == PCI_CAP_ID_EXP) {
      *out = at;
      return rc;
    }
    word >>= 8;  // the next one
  }
  return rc;
}

}  // namespace

int ConfigFile::read16(uint32_t offset_bytes, uint16_t* out) {
  return result(kernel_.read(fd_, out, sizeof(*out), begin_bytes_ + offset_bytes));
}

int ConfigFile::write16(uint32_t offset_bytes, uint16_t value) {
  return result(kernel_.write(fd_, &value, sizeof(value), begin_bytes_ + offset_bytes));
}

int set_bus_master(ConfigSpace& config, bool master) {
  uint16_t command = 0;
  if (const int rc = config.read16(PCI_COMMAND, &command); rc != 0) {
    return rc;
  }
  command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
  return config.write16(PCI_COMMAND,
                        master ? command : static_cast<uint16_t>(command ^ PCI_COMMAND_MASTER));
}

int end_bus_mastering(ConfigSpace& config) {
  uint16_t command = 0;
  int rc = set_bus_master(config, false);
  rc = rc == 0 ? config.read16(PCI_COMMAND, &command) : rc;
  if (rc != 0 || command == kGone) {
    return rc;
  }
  if ((command & PCI_COMMAND_MASTER) != 0) {
    return -EIO;
  }
  uint32_t express = 0;
  rc = find_express(config, &express);
  if (rc != 0 || express == 0) {
    return rc;
  }
  for (int i = 0; i < kNapsMax; ++i) {
    uint16_t status = 0;
    rc = config.read16(express + PCI_EXP_DEVSTA, &status);
    if (rc != 0 || status == kGone || (status & PCI_EXP_DEVSTA_TRPND) == 0) {
      return rc;
    }
    config.nap();
  }
  return -ETIMEDOUT;
}

}  // namespace rio::pmd::vfio
