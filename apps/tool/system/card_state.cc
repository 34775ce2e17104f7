#include "apps/tool/system/card_state.hpp"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "apps/tool/system/files.hpp"
#include "fpga/name/pci_address.hpp"

namespace rio::tool {
namespace {

constexpr uint64_t kUnset = 0x20000000;  // IORESOURCE_UNSET

std::optional<pci::PciConfig> config_of(const GlobalOptions& context, const std::string& address) {
  pci::PciConfig config;
  if (address.empty() || !exists(device_folder(context.paths, address) + "/config") ||
      pci::read_config(context.paths, address, &config) != 0) {
    return std::nullopt;
  }
  return config;
}

}  // namespace

bool Resource::unset() const {
  return there() && (first == 0 || (flags & kUnset) != 0);
}

uint64_t Resource::len_bytes() const {
  return there() && last >= first ? last - first + 1 : 0;
}

std::array<Resource, 6> parse_resource(const std::string& text) {
  std::array<Resource, 6> bars{};
  std::istringstream lines(text);
  std::string line;
  for (Resource& bar : bars) {
    if (!std::getline(lines, line)) {
      break;
    }
    Resource read;
    if (std::sscanf(line.c_str(), "%" SCNx64 " %" SCNx64 " %" SCNx64, &read.first, &read.last,
                    &read.flags) == 3) {
      bar = read;
    }
  }
  return bars;
}

std::string bridge_of(const pci::PciPaths& paths, const std::string& address) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(device_folder(paths, address), error);
  const std::string above = error ? "" : folder.parent_path().filename().string();
  name::PciAddress address_above;
  return name::read_pci_address(above, &address_above) ? above : "";
}

int read_cards(const GlobalOptions& context, std::vector<CardState>* out) {
  std::vector<pci::PciCard> cards;
  if (const int rc = pci::find_cards(context.paths, &cards); rc != 0) {
    return rc;
  }
  std::vector<CardState> states;
  for (const pci::PciCard& card : cards) {
    CardState state;
    static_cast<pci::PciCard&>(state) = card;
    const std::string folder = device_folder(context.paths, card.address);
    state.bars = parse_resource(text_of(folder + "/resource"));
    state.config = config_of(context, card.address);
    state.bridge = bridge_of(context.paths, card.address);
    state.bridge_config = config_of(context, state.bridge);
    state.power = text_of(folder + "/power_state");
    state.override_driver = text_of(folder + "/driver_override");
    if (state.override_driver == "(null)") {
      state.override_driver.clear();
    }
    pci::CardId id;
    // In a copy of a system there is nothing that could be woken.
    const bool may_look = context.root.empty() || state.awake();
    if (may_look && !state.bars[static_cast<size_t>(card.bar)].unset() &&
        pci::read_card_id(context.paths, card, &id) == 0) {
      state.id = id;
    }
    states.push_back(std::move(state));
  }
  *out = std::move(states);
  return 0;
}

std::string link_text(unsigned speed, unsigned width) {
  if (speed == 0 || width == 0) {
    return "";
  }
  return std::string(pci::link_speed_name(speed)) + " x" + std::to_string(width);
}

}  // namespace rio::tool
