/// @file
/// All that can be known of a card without opening it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "pmd/api/pci.hpp"

namespace rio::tool {

/// A line of sysfs's `resource`: addresses and IORESOURCE_* flags of a BAR; zeros: no such BAR.
struct Resource {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t flags = 0;

  [[nodiscard]] bool there() const { return flags != 0 || last != 0; }
  /// The firmware or the kernel gave it no room.
  [[nodiscard]] bool unset() const;
  /// @return 0 where there is none.
  [[nodiscard]] uint64_t len_bytes() const;
};

/// The BARs of a `resource` file. Missing and bad lines are zeros.
[[nodiscard]] std::array<Resource, 6> parse_resource(const std::string& text);

struct CardState : pci::PciCard {
  std::array<Resource, 6> bars{};
  std::optional<pci::PciConfig> config;  ///< none: it could not be read
  std::string bridge;                    ///< address of the bridge above, empty if unknown
  std::optional<pci::PciConfig> bridge_config;
  std::optional<pci::CardId> id;  ///< none: asleep, no rights, or no BAR
  std::string power;              ///< "D0", "D3hot"; empty: the kernel does not say
  std::string override_driver;    ///< of driver_override, empty if none

  /// Whether the card answers: not powered down.
  [[nodiscard]] bool awake() const { return power.empty() || power == "D0" || power == "unknown"; }
};

/// The cards of the machine. @return 0 or what find_cards() says.
[[nodiscard]] int read_cards(const GlobalOptions& context, std::vector<CardState>* out);

/// Address of the bridge above a device, empty if there is none.
[[nodiscard]] std::string bridge_of(const pci::PciPaths& paths, const std::string& address);

/// "8 GT/s x8"; empty without a link.
[[nodiscard]] std::string link_text(unsigned speed, unsigned width);

}  // namespace rio::tool
