// The PCIe link of each card.
#include <algorithm>
#include <bit>

#include "apps/tool/doctor/machine.hpp"
#include "base/formatted.hpp"

namespace rio::tool {
namespace {

using pci::PciConfig;

constexpr unsigned kMrrsWanted = 512;

std::string setpci(const std::string& address, const std::string& what) {
  return "setpci -s " + address + " " + what;
}

/// Card and slot together can do so much.
void check_training(const CardState& card, Findings& findings) {
  const PciConfig& own = *card.config;
  if (own.width() == 0) {
    return;  // an endpoint within the root complex has no link
  }
  const bool slot_known = card.bridge_config && card.bridge_config->width_max() != 0;
  const unsigned slot_width = slot_known ? card.bridge_config->width_max() : own.width_max();
  const unsigned slot_speed = slot_known ? card.bridge_config->speed_max() : own.speed_max();
  const std::string has = link_text(own.speed(), own.width());
  const std::string can = "; card " + link_text(own.speed_max(), own.width_max()) + ", slot " +
                          (slot_known ? link_text(slot_speed, slot_width) : "unknown");
  const std::string retrain = card.bridge.empty() ? "" : setpci(card.bridge, "CAP_EXP+10.w=20:20");
  if (own.width() < std::min(own.width_max(), slot_width)) {
    findings.add("link.width", card.address, has + can, retrain,
                 "if it stays so: seat the card anew, without a riser; load the gateware before "
                 "the machine starts");
  }
  if (own.speed() < std::min(own.speed_max(), slot_speed)) {
    findings.add("link.speed", card.address, has + can, retrain,
                 "if it stays so: the slot's speed in the firmware's set-up");
  }
  if (slot_width < own.width_max() || slot_speed < own.speed_max()) {
    findings.add("link.slot", card.address, has + can, "",
                 "put the card into a slot that has what it can");
  }
}

void check_card(const CardState& card, Findings& findings) {
  const PciConfig& own = *card.config;
  const std::string& address = card.address;
  check_training(card, findings);
  if (own.aspm() != 0) {
    findings.add("link.aspm", address,
                 std::string("ASPM ") +
                     (own.aspm() == 1   ? "L0s"
                      : own.aspm() == 2 ? "L1"
                                        : "L0s and L1") +
                     " is on",
                 setpci(address, "CAP_EXP+10.w=0:3"), "for good: boot with pcie_aspm=off");
  }
  if (own.aer && own.aer_uncorrectable != 0) {
    findings.add("link.errors", address, pci::uncorrectable_names(own.aer_uncorrectable),
                 setpci(address, base::formatted("ECAP_AER+4.l=%08x", own.aer_uncorrectable)),
                 "that clears them; dmesg | grep AER may say when they came");
  }
  if (card.bridge_config && card.bridge_config->express &&
      card.bridge_config->mps_bytes() != own.mps_bytes()) {
    const unsigned both = std::min({card.bridge_config->mps_bytes(), own.mps_max_bytes()});
    const auto code = static_cast<unsigned>(std::max(0, std::countr_zero(both) - 7));
    findings.add("pcie.mps", address,
                 "card " + std::to_string(own.mps_bytes()) + " bytes, bridge " + card.bridge + " " +
                     std::to_string(card.bridge_config->mps_bytes()),
                 setpci(address, base::formatted("CAP_EXP+8.w=%02x:e0", code << 5)),
                 both < card.bridge_config->mps_bytes()
                     ? "the card cannot do what the bridge has: boot with pci=pcie_bus_safe"
                     : "");
  }
  if (own.mrrs_bytes() < kMrrsWanted) {
    findings.add("pcie.mrrs", address,
                 "its read requests are at most " + std::to_string(own.mrrs_bytes()) + " bytes",
                 setpci(address, "CAP_EXP+8.w=2000:7000"));
  }
}

}  // namespace

void check_link(const Machine& machine, Findings& findings) {
  for (const CardState& card : machine.cards) {
    if (!card.config || card.config->gone) {
      continue;
    }
    if (!card.config->whole) {
      findings.unseen.push_back(
          card.address + ": its link, payload sizes and errors (the kernel shows them to root)");
    } else if (card.config->express) {
      check_card(card, findings);
    }
  }
}

}  // namespace rio::tool
