/// @file
/// The table of the kinds of cards and of their keys: the only place where these are written down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/number.hpp"
#include "fpga/name/card_name.hpp"

namespace rio::name {

/// A set of kinds: bit i is alternative i of Kind.
using Kinds = uint32_t;

/// One kind.
struct KindRow {
  Kinds bit;
  std::string_view prefix;  ///< of the name; empty: PCI cards, whose name is their address
  const char* spelled;      ///< for lists of kinds: "shm:FABRIC"
  const char* phrase;       ///< before "card": "an emulated"
  const char* allowed;      ///< behind the prefix; null: keys follow at once
  uint32_t places;          ///< where such a card can be named: bit i is the i-th of Place
  /// Make it the kind of `out`. @return false: `rest`, what is behind the prefix, is not allowed.
  bool (*take)(std::string_view rest, CardName* out);

  [[nodiscard]] bool is_for(Place place) const {
    return (places >> static_cast<uint32_t>(place) & 1) != 0;
  }
};

/// One key. Two rows may have the same key for different kinds.
struct Key {
  std::string_view key;
  Kinds kinds;           ///< that have it, outside of DPDK
  Kinds device_kinds;    ///< that have it as devices of DPDK
  Kinds required;        ///< kinds that cannot do without
  const char* allowed;   ///< values: "1 to 31"
  const char* fallback;  ///< the default; null: none
  bool (*take)(std::string_view value, CardName* out);
  std::string_view old{};  ///< another spelling, which keeps working
};

/// In the order in which prefixes are to be compared. Any thread, as keys().
[[nodiscard]] std::span<const KindRow> kinds();
[[nodiscard]] std::span<const Key> keys();

/// The row of a card's kind.
[[nodiscard]] const KindRow& row_of(const CardName& name);

/// The kinds of a set by their prefixes, as "emu, shm, udp".
[[nodiscard]] std::string list_kinds(Kinds set);

/// Read a number as base::read_number() does, for a key of any unsigned type.
/// @return false: it is not one from `least` to `most`.
template <typename Number>
[[nodiscard]] bool take_number(std::string_view text, uint64_t least, uint64_t most, Number* out) {
  uint64_t value = 0;
  if (!base::read_number(text, least, most, &value)) {
    return false;
  }
  *out = static_cast<Number>(value);
  return true;
}

}  // namespace rio::name
