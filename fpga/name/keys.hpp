/// @file
/// The table of the kinds of cards and of their keys: the only place where these are written down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fpga/name/card_name.hpp"

namespace rio::name {

/// A set of kinds: bit i is alternative i of Kind.
using Kinds = uint32_t;

/// Take a text as the value of a key, or as the name of a card. @return false: it is not allowed.
using Take = bool (*)(std::string_view text, CardName* name);

struct KindRow {
  Kinds bit;
  std::string_view prefix;  ///< of the name; empty: PCI cards, whose name is their address
  const char* spelled;      ///< for lists of kinds: "shm:FABRIC"
  const char* allowed;      ///< behind the prefix; null: keys follow at once
  Take take;                ///< what is behind the prefix; sets the kind
};

/// A key, whose name may stand in two rows for different kinds.
struct Key {
  std::string_view key;
  Kinds kinds;           ///< that have it, outside of DPDK
  const char* allowed;   ///< values: "1 to 31"
  const char* fallback;  ///< the default; null: the key must be given
  Take take;
  std::string_view old{};        ///< another spelling, which keeps working
  Kinds dpdk = kinds & 0b11111;  ///< kinds that have it as devices of DPDK
};

/// In the order in which prefixes are to be compared. Any thread, as the functions below.
[[nodiscard]] std::span<const KindRow> kinds();
[[nodiscard]] std::span<const Key> keys();

/// The kinds that can be named in a place.
[[nodiscard]] Kinds kinds_at(Place place);
/// The row of a card's kind.
[[nodiscard]] const KindRow& row_of(const Kind& kind);
/// The kinds of a set by their prefixes, as "emu, shm, udp".
[[nodiscard]] std::string list_kinds(Kinds set);

}  // namespace rio::name
