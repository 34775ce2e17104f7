#include "pmd/bus/vfio/pci_config.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <linux/pci_regs.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/formatted.hpp"
#include "base/log.hpp"
#include "pmd/bus/vfio/libpci.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {
namespace {

struct Job {
  name::PciAddress address;
  PciConfig config;
};

void read_express(pci_dev* device, int at, PciConfig& config) {
  config.express = true;
  config.device_caps = pci_read_long(device, at + PCI_EXP_DEVCAP);
  config.device_control = pci_read_word(device, at + PCI_EXP_DEVCTL);
  config.link_caps = pci_read_long(device, at + PCI_EXP_LNKCAP);
  config.link_control = pci_read_word(device, at + PCI_EXP_LNKCTL);
  config.link_status = pci_read_word(device, at + PCI_EXP_LNKSTA);
}

void read_device(pci_access* access, void* arg) {
  auto& job = *static_cast<Job*>(arg);
  PciConfig& config = job.config;
  const name::PciAddress& at = job.address;
  pci_dev* device = pci_get_dev(access, static_cast<int>(at.domain), static_cast<int>(at.bus),
                                static_cast<int>(at.device), static_cast<int>(at.function));
  config.gone = pci_read_long(device, PCI_VENDOR_ID) == 0xFFFFFFFF;
  if (config.gone) {
    pci_free_dev(device);
    return;
  }
  config.command = pci_read_word(device, PCI_COMMAND);
  u8 last = 0;
  config.whole = pci_read_block(device, 0xFF, &last, 1) != 0;
  if (config.whole) {
    pci_fill_info(device, PCI_FILL_CAPS | PCI_FILL_EXT_CAPS);
    // The structure must end where the space of a conventional device does.
    if (const pci_cap* cap = pci_find_cap(device, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
        cap != nullptr && cap->addr + PCI_EXP_LNKSTA + 2 <= 256) {
      read_express(device, static_cast<int>(cap->addr), config);
    }
    if (const pci_cap* cap = pci_find_cap(device, PCI_EXT_CAP_ID_ERR, PCI_CAP_EXTENDED);
        cap != nullptr && cap->addr + PCI_ERR_UNCOR_STATUS + 4 <= 4096) {
      config.aer = true;
      config.aer_uncorrectable =
          pci_read_long(device, static_cast<int>(cap->addr + PCI_ERR_UNCOR_STATUS));
    }
  }
  pci_free_dev(device);
}

}  // namespace

const char* link_speed_name(unsigned generation) {
  static constexpr std::array<const char*, 7> kNames = {"?",       "2.5 GT/s", "5 GT/s", "8 GT/s",
                                                        "16 GT/s", "32 GT/s",  "64 GT/s"};
  return generation < kNames.size() ? kNames[generation] : "?";
}

std::string uncorrectable_names(uint32_t status) {
  struct Bit {
    uint32_t mask;
    const char* name;
  };
  static constexpr std::array<Bit, 14> kBits = {{{PCI_ERR_UNC_DLP, "DLP"},
                                                 {PCI_ERR_UNC_SURPDN, "SDES"},
                                                 {PCI_ERR_UNC_POISON_TLP, "TLP"},
                                                 {PCI_ERR_UNC_FCP, "FCP"},
                                                 {PCI_ERR_UNC_COMP_TIME, "CmpltTO"},
                                                 {PCI_ERR_UNC_COMP_ABORT, "CmpltAbrt"},
                                                 {PCI_ERR_UNC_UNX_COMP, "UnxCmplt"},
                                                 {PCI_ERR_UNC_RX_OVER, "RxOF"},
                                                 {PCI_ERR_UNC_MALF_TLP, "MalfTLP"},
                                                 {PCI_ERR_UNC_ECRC, "ECRC"},
                                                 {PCI_ERR_UNC_UNSUP, "UnsupReq"},
                                                 {PCI_ERR_UNC_ACSV, "ACSViol"},
                                                 {PCI_ERR_UNC_INTN, "UncorrIntErr"},
                                                 {PCI_ERR_UNC_MCBTLP, "BlockedTLP"}}};
  std::string text;
  for (const Bit& bit : kBits) {
    if ((status & bit.mask) != 0) {
      text.append(text.empty() ? "" : ", ").append(bit.name);
      status &= ~bit.mask;
    }
  }
  if (status != 0) {
    text.append(text.empty() ? "" : ", ").append(base::formatted("0x%x", status));
  }
  return text;
}

int read_config(const PciPaths& paths, const std::string& address, PciConfig* out) {
  Job job{};
  if (const int rc = parse_address(address, &job.address); rc != 0) {
    return rc;
  }
  std::error_code ignored;
  const std::string path = device_folder(paths, job.address.text()) + "/config";
  if (!std::filesystem::exists(path, ignored)) {
    base::log_error("%s: no such device: %s is not there: echo 1 > /sys/bus/pci/rescan",
                    address.c_str(), path.c_str());
    return -ENODEV;
  }
  if (const int rc = run_libpci(paths, read_device, &job); rc != 0) {
    return rc;
  }
  *out = job.config;
  return 0;
}

}  // namespace rio::pmd::vfio
