/// @file
/// Finds the cards of this machine, through libpci.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fpga/name/pci_address.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// A card, as the system describes it.
struct PciCard {
  std::string address;  ///< "0000:03:00.0"
  uint16_t vendor = 0;
  uint16_t device = 0;
  uint16_t subsystem_vendor = 0;
  uint16_t subsystem = 0;
  std::string driver;                   ///< bound, empty if none
  int iommu_group = -1;                 ///< -1: none
  int numa_node = -1;                   ///< -1: unknown
  std::array<uint64_t, 6> bar_bytes{};  ///< 0: no such BAR
  int bar = 0;  ///< the BAR with the registers: 0, or 2 of an ivshmem device
};

/// The folder of a device in sysfs.
[[nodiscard]] inline std::string device_folder(const PciPaths& paths, const std::string& address) {
  return paths.sysfs + "/bus/pci/devices/" + address;
}
/// The file of a card's BAR in sysfs.
[[nodiscard]] inline std::string bar_path(const PciPaths& paths, const PciCard& card) {
  return device_folder(paths, card.address) + "/resource" + std::to_string(card.bar);
}

/// Read an address, "0000:03:00.0"; the domain may be missing. @return 0, or -EINVAL, logged.
[[nodiscard]] int parse_address(const std::string& text, name::PciAddress* out);

/// Find all cards, ordered by address: devices with the four ids of the reference gateware, since
/// the chip's vendor and device belong to other designs, too, and ivshmem devices whose BAR2 holds
/// the magic (reading it takes rights). Opening a card checks its magic. Control path; libpci is
/// not thread-safe. @return 0, even if none is found, or -errno, logged.
[[nodiscard]] int find_cards(const PciPaths& paths, std::vector<PciCard>* cards,
                             Kernel& kernel = real_kernel());

/// Find one device, whatever its ids, which choose `bar`. @return 0, -ENODEV (no such device;
/// logged with those that exist), or as find_cards().
[[nodiscard]] int find_card(const PciPaths& paths, const std::string& address, PciCard* card);

}  // namespace rio::pmd::vfio
