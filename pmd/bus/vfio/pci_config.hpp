/// @file
/// The parts of a device's configuration space that matter to a card, found by libpci.
#pragma once

#include <cstdint>
#include <string>

#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// Register values; the functions decode them. PCI Express Base 7.5.
struct PciConfig {
  bool gone = false;     ///< all ones: nothing answers; the rest is 0
  bool express = false;  ///< has the PCI Express capability; without it the rest is 0
  bool aer = false;      ///< has advanced error reporting
  bool whole = false;    ///< false: the kernel shows the first 64 bytes only (no rights)
  uint16_t command = 0;
  uint32_t device_caps = 0;
  uint16_t device_control = 0;
  uint32_t link_caps = 0;
  uint16_t link_control = 0;
  uint16_t link_status = 0;
  uint32_t aer_uncorrectable = 0;  ///< status, one bit an error

  [[nodiscard]] bool memory_on() const { return (command & 0x2) != 0; }
  [[nodiscard]] bool master_on() const { return (command & 0x4) != 0; }
  /// Largest payload of a write, in bytes: the setting, and the device's limit.
  [[nodiscard]] unsigned mps_bytes() const { return 128u << ((device_control >> 5) & 7); }
  [[nodiscard]] unsigned mps_max_bytes() const { return 128u << (device_caps & 7); }
  /// Largest read request, in bytes.
  [[nodiscard]] unsigned mrrs_bytes() const { return 128u << ((device_control >> 12) & 7); }
  [[nodiscard]] bool relaxed_ordering() const { return (device_control & 0x10) != 0; }
  [[nodiscard]] bool can_flr() const { return (device_caps & 0x10000000) != 0; }
  /// The link's generation, 1 to 6 (0: there is none), and its lanes.
  [[nodiscard]] unsigned speed() const { return link_status & 0xF; }
  [[nodiscard]] unsigned speed_max() const { return link_caps & 0xF; }
  [[nodiscard]] unsigned width() const { return (link_status >> 4) & 0x3F; }
  [[nodiscard]] unsigned width_max() const { return (link_caps >> 4) & 0x3F; }
  /// Sleep states that the link may enter: bit 0 L0s, bit 1 L1.
  [[nodiscard]] unsigned aspm() const { return link_control & 3; }
};

/// The speed of a generation, "8 GT/s"; "?" if there is no such generation.
[[nodiscard]] const char* link_speed_name(unsigned generation);

/// Names of the errors in AER's uncorrectable status, as lspci prints them: "CmpltTO, MalfTLP".
[[nodiscard]] std::string uncorrectable_names(uint32_t status);

/// Read a device's registers. Control path; libpci is not thread-safe. Without rights the kernel
/// shows the header only: then `whole` is false. @param address as parse_address() takes it.
/// @return 0, -EINVAL (not an address), -ENODEV (no such device), -EIO; logged.
[[nodiscard]] int read_config(const PciPaths& paths, const std::string& address, PciConfig* out);

}  // namespace rio::pmd::vfio
