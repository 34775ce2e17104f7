#include "pmd/bus/vfio/pci_scan.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/log.hpp"
#include "pmd/bus/mmio.hpp"
#include "pmd/bus/vfio/backend.hpp"

namespace rio::pmd::vfio {
namespace {

// libpci's error function must not return. The frames between it and setjmp are C.
thread_local std::jmp_buf t_scan_failed;
thread_local char t_scan_message[256];

__attribute__((noreturn)) void on_libpci_error(char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  std::vsnprintf(t_scan_message, sizeof(t_scan_message), fmt, args);
  va_end(args);
  std::longjmp(t_scan_failed, 1);
}

void on_libpci_warning(char* fmt, ...) {
  char text[256];
  va_list args;
  va_start(args, fmt);
  std::vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  log_warning("libpci: %s", text);
}

constexpr int kFill = PCI_FILL_IDENT | PCI_FILL_BASES | PCI_FILL_SIZES | PCI_FILL_NUMA_NODE |
                      PCI_FILL_IOMMU_GROUP | PCI_FILL_DRIVER;

/// Scan and fill; no object with a destructor lives here, since it may be left by longjmp.
/// @return whether it succeeded.
bool scan(pci_access* access) {
  if (setjmp(t_scan_failed) != 0) {  // NOLINT: the only way out of libpci's error function
    return false;
  }
  pci_init(access);
  pci_scan_bus(access);
  for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
    pci_fill_info(device, kFill);
    // Asked for now, so that no later call can fail.
    (void)pci_get_string_property(device, PCI_FILL_DRIVER);
    (void)pci_get_string_property(device, PCI_FILL_IOMMU_GROUP);
  }
  return true;
}

/// What libpci knows of a device, in our words.
PciCard describe(pci_dev* device) {
  PciCard card;
  char address[32];
  std::snprintf(address, sizeof(address), "%04x:%02x:%02x.%d",
                static_cast<unsigned>(device->domain), device->bus, device->dev, device->func);
  card.address = address;
  card.vendor = device->vendor_id;
  card.device = device->device_id;
  if (const char* driver = pci_get_string_property(device, PCI_FILL_DRIVER); driver != nullptr) {
    card.driver = driver;
  }
  if (const char* group = pci_get_string_property(device, PCI_FILL_IOMMU_GROUP); group != nullptr) {
    char* end = nullptr;
    const long number = std::strtol(group, &end, 10);
    card.iommu_group = end != group && *end == '\0' && number >= 0 ? static_cast<int>(number) : -1;
  }
  card.numa_node = device->numa_node;
  for (size_t i = 0; i < card.bar_bytes.size(); ++i) {
    card.bar_bytes[i] = device->size[i];
  }
  if (card.vendor == regs::kPciIvshmemVendor && card.device == regs::kPciIvshmemDevice) {
    card.bar = 2;
  }
  return card;
}

int scan_all(const PciPaths& paths, std::vector<PciCard>* out) {
  const std::string folder = paths.sysfs + "/bus/pci";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder + "/devices", ignored)) {
    log_error(
        "no PCI devices: %s/devices does not exist (is sysfs mounted? mount -t sysfs sysfs "
        "/sys)",
        folder.c_str());
    return -ENODEV;
  }
  pci_access* access = pci_alloc();
  access->error = on_libpci_error;
  access->warning = on_libpci_warning;
  access->method = PCI_ACCESS_SYS_BUS_PCI;
  std::string value = folder;
  char name[] = "sysfs.path";
  pci_set_param(access, name, value.data());
  if (!scan(access)) {
    log_error("libpci: %s: run lspci to see whether the tree below %s is whole", t_scan_message,
              folder.c_str());
    pci_cleanup(access);  // what it had linked; a file that it read stays open
    return -EIO;
  }
  std::vector<PciCard> cards;
  for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
    cards.push_back(describe(device));
  }
  pci_cleanup(access);
  std::sort(cards.begin(), cards.end(),
            [](const PciCard& a, const PciCard& b) { return a.address < b.address; });
  *out = std::move(cards);
  return 0;
}

/// First word of a BAR through sysfs; all ones where that cannot be read.
uint32_t first_word(const PciPaths& paths, Kernel& kernel, const PciCard& card) {
  const std::string path =
      paths.sysfs + "/bus/pci/devices/" + card.address + "/resource" + std::to_string(card.bar);
  const Fd fd(kernel, kernel.open(path, O_RDWR | O_SYNC));
  void* va = nullptr;
  if (fd.get() < 0 ||
      kernel.mmap(nullptr, regs::kPageBytes, PROT_READ, MAP_SHARED, fd.get(), 0, &va) != 0) {
    return regs::kAllOnes;
  }
  const uint32_t word = Mmio(va, regs::kPageBytes).read32(regs::id::magic());
  kernel.munmap(va, regs::kPageBytes);
  return word;
}

/// Whether BAR2 of an ivshmem device holds the magic. Quiet where it does not: most are no cards.
bool has_magic(const PciPaths& paths, Kernel& kernel, const PciCard& card) {
  if (card.bar_bytes[2] < regs::kPageBytes) {
    return false;
  }
  const uint32_t word = first_word(paths, kernel, card);
  if (word != regs::kAllOnes || card.driver != kVfioDriver) {
    return word == regs::kMagic;
  }
  // vfio-pci keeps a device that nobody has open powered down: look through VFIO.
  std::unique_ptr<Backend> backend;
  return open_vfio_backend(paths, kernel, card, &backend) == 0 &&
         Mmio(backend->bar_va(), backend->bar_bytes()).read32(regs::id::magic()) == regs::kMagic;
}

}  // namespace

int parse_address(const std::string& text, std::string* address) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  int used = 0;
  const bool hex_only = text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
  bool ok = hex_only &&
            std::sscanf(text.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function,
                        &used) == 4 &&
            static_cast<size_t>(used) == text.size();
  if (!ok) {
    domain = 0;
    used = 0;
    ok = hex_only &&
         std::sscanf(text.c_str(), "%2x:%2x.%1x%n", &bus, &device, &function, &used) == 3 &&
         static_cast<size_t>(used) == text.size();
  }
  if (!ok || device > 31 || function > 7) {
    log_error("\"%s\" is no PCI address: write it as lspci -D does, for example 0000:03:00.0",
              text.c_str());
    return -EINVAL;
  }
  char normal[32];
  std::snprintf(normal, sizeof(normal), "%04x:%02x:%02x.%x", domain, bus, device, function);
  *address = normal;
  return 0;
}

int find_cards(const PciPaths& paths, Kernel& kernel, std::vector<PciCard>* cards) {
  std::vector<PciCard> all;
  if (const int rc = scan_all(paths, &all); rc != 0) {
    return rc;
  }
  std::erase_if(all, [&](const PciCard& card) {
    if (card.vendor == regs::kPciVendor && card.device == regs::kPciDevice) {
      return false;
    }
    return card.bar != 2 || !has_magic(paths, kernel, card);
  });
  *cards = std::move(all);
  return 0;
}

int find_cards(const PciPaths& paths, std::vector<PciCard>* cards) {
  return find_cards(paths, real_kernel(), cards);
}

int find_card(const PciPaths& paths, const std::string& address, PciCard* card) {
  std::string normal;
  if (const int rc = parse_address(address, &normal); rc != 0) {
    return rc;
  }
  std::vector<PciCard> all;
  if (const int rc = scan_all(paths, &all); rc != 0) {
    return rc;
  }
  std::string known;
  for (const PciCard& candidate : all) {
    if (candidate.address == normal) {
      *card = candidate;
      return 0;
    }
    if (candidate.vendor == regs::kPciVendor && candidate.device == regs::kPciDevice) {
      known += " " + candidate.address;
    }
  }
  log_error(
      "no PCI device %s; cards of this kind:%s. If one is missing: echo 1 > "
      "/sys/bus/pci/rescan",
      normal.c_str(), known.empty() ? " none" : known.c_str());
  return -ENODEV;
}

}  // namespace rio::pmd::vfio
