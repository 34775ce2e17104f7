/// @file
/// How to make an emulated card in this process.
#pragma once

#include <cstdint>
#include <variant>

#include "fpga/name/card_name.hpp"

namespace rio::pmd {

using name::Stepping;

/// The wire that carries the packets of an emulated card.
using EmuWire = std::variant<name::Cable, name::Switched, name::Shm, name::Udp, name::Relay>;

struct EmuConfig {
  EmuWire wire{};
  name::Model model{};
  /// In a fabric of processes or machines: the first destID, those behind it are of the other queue
  /// pairs. 0: the lowest free ones. Of a board it is the destID of the board's queue pair 0.
  uint32_t id = 0;
  /// Not 0, in a fabric of processes, without a board: `id` is a wish. Where it is taken the card
  /// gets the next free destIDs, by such steps.
  uint32_t id_step = 0;
};

/// The card of a name. Any thread. @return false: no card that is emulated in this process.
[[nodiscard]] inline bool emu_config(const name::CardName& name, EmuConfig* out) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (std::is_constructible_v<EmuWire, decltype(kind)>) {
          *out = {kind, name.model, name.id};
          return true;
        }
        return false;
      },
      name.kind);
}

}  // namespace rio::pmd
