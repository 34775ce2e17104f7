/// @file
/// Addresses of PCI functions, as lspci writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rio::name {

/// "DOMAIN:BUS:DEVICE.FUNCTION", in hexadecimal.
struct PciAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;       ///< 0 to 255
  uint32_t device = 0;    ///< 0 to 31
  uint32_t function = 0;  ///< 0 to 7

  /// "0000:03:00.0".
  [[nodiscard]] std::string text() const;
};

/// Any thread. @param text foreign; domain, or domain and bus, may be left out, and are 0 then.
/// @return false: not an address; `*out` is then as it was.
[[nodiscard]] bool read_pci_address(std::string_view text, PciAddress* out);

}  // namespace rio::name
