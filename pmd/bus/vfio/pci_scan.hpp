/// @file
/// Which cards are there: found by libpci.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// A card, as the system knows it.
struct PciCard {
  std::string address;  ///< "0000:03:00.0"
  uint16_t vendor = 0;
  uint16_t device = 0;
  std::string driver;                   ///< bound, empty if none
  int iommu_group = -1;                 ///< -1: none
  int numa_node = -1;                   ///< -1: unknown
  std::array<uint64_t, 6> bar_bytes{};  ///< 0: no such BAR
  int bar = 0;  ///< the BAR with the registers: 0, or 2 of an ivshmem device
};

/// Bring an address into the form "0000:03:00.0"; the domain may be missing.
/// @return 0, or -EINVAL with the reason in the log.
[[nodiscard]] int parse_address(const std::string& text, std::string* address);

/// All cards, in the order of their addresses: the ids of the reference gateware, and ivshmem
/// devices whose BAR2 holds the magic (which is looked at, so it takes the rights to do so).
/// Control path; libpci is not thread-safe. @return 0 (none found is no error) or -errno with the
/// reason in the log.
[[nodiscard]] int find_cards(const PciPaths& paths, Kernel& kernel, std::vector<PciCard>* cards);
[[nodiscard]] int find_cards(const PciPaths& paths, std::vector<PciCard>* cards);

/// One device, whatever its ids; `bar` is set by them. @return 0, -ENODEV (no such device, in the
/// log with those that exist), or what find_cards() says.
[[nodiscard]] int find_card(const PciPaths& paths, const std::string& address, PciCard* card);

}  // namespace rio::pmd::vfio
