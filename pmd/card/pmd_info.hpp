/// @file
/// What dpdk-pmdinfo.py tells of a plug-in.
#pragma once

#include <bus_pci_driver.h>
#include <rte_dev.h>

#include <array>
#include <string_view>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {

/// A card, and QEMU's ivshmem, whose BAR2 may be a card's.
inline constexpr rte_pci_id kPciIds[] = {
    {RTE_CLASS_ANY_ID, regs::kPciVendor, regs::kPciDevice, regs::kPciSubsystemVendor,
     regs::kPciSubsystem},
    {RTE_PCI_DEVICE(regs::kPciIvshmemVendor, regs::kPciIvshmemDevice)},
    {},
};

/// The text that dpdk-pmdinfo.py looks for in a plug-in: a line of JSON, and zeros. DPDK's own
/// build makes it of the strings that RTE_PMD_REGISTER_… leave in an object file, by a program that
/// no distribution has.
[[nodiscard]] consteval auto pmd_info(std::string_view name, std::string_view params,
                                      std::string_view kmods) {
  std::array<char, 1536> text{};
  size_t length = 0;
  const auto add = [&](std::string_view more) {
    for (const char one : more) {
      text.at(length++) = one;
    }
  };
  const auto add_number = [&](uint32_t number) {
    for (uint32_t unit = 1'000'000'000, left = number; unit != 0; left %= unit, unit /= 10) {
      if (number >= unit) {
        text.at(length++) = static_cast<char>('0' + left / unit);
      }
    }
  };
  add("PMD_INFO_STRING= {\"name\" : \"");
  add(name);
  add("\", \"params\" : \"");
  add(params);
  add("\", \"kmod\" : \"");
  add(kmods);
  add("\", \"pci_ids\" : [");
  for (const rte_pci_id& id : kPciIds) {
    if (id.vendor_id != 0) {
      add(&id == kPciIds ? "[" : ", [");
      for (const uint32_t number : {id.vendor_id, id.device_id, id.subsystem_vendor_id}) {
        add_number(number);
        add(", ");
      }
      add_number(id.subsystem_device_id);
      add("]");
    }
  }
  add("]}");
  return text;
}

}  // namespace rio::pmd

/// Make a plug-in known to dpdk-pmdinfo.py. In namespace rio::pmd.
/// @param params literal: the arguments, each as key=<values>.
#define RIO_REGISTER_PMD_INFO(driver, params)                              \
  RTE_PMD_REGISTER_PCI_TABLE(driver, kPciIds);                             \
  RTE_PMD_REGISTER_KMOD_DEP(driver, "* vfio-pci | uio_pci_generic");       \
  RTE_PMD_REGISTER_PARAM_STRING(driver, params);                           \
  [[gnu::used, gnu::retain]] static constexpr auto k_##driver##_pmd_info = \
      pmd_info(#driver, params, "* vfio-pci | uio_pci_generic")
