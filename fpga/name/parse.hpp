/// @file
/// The parser of cards' names, for every program: the only one. Start here.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "fpga/name/card_name.hpp"

namespace rio::name {

/// A key that the caller takes besides the card's own.
struct OwnKey {
  std::string key;
  std::string allowed;  ///< values, as a phrase: "0 to 3"
  /// Called at most once. @return false: the value is not allowed.
  std::function<bool(std::string_view value)> take;
};

/// Parse the name of a card. Any thread.
/// @param text foreign.
/// @param out set only on success.
/// @param error one line: what is wrong, and what is allowed. Callers put before it what was
/// parsed.
/// @return 0; -EINVAL: a kind that is unknown or of no use here, a key that is unknown, given twice
/// or missing, or a value that is not allowed.
[[nodiscard]] int parse(Place place, std::string_view text, std::span<const OwnKey> own,
                        CardName* out, std::string* error);

/// Parse a name that was cut at its commas, as rte_kvargs cuts the arguments of a DPDK device. Like
/// the parse() of a text. @param pieces at least one, but for a device.
[[nodiscard]] int parse(Place place, std::span<const std::string_view> pieces,
                        std::span<const OwnKey> own, CardName* out, std::string* error);

/// On what an emulated device of DPDK is: the value of wire= without "emu:", "loop" if there is
/// none; with the endpoint if it is in a fabric of switches. Devices of a process with equal texts
/// are wired to each other, but for "loop". @param args of the device; need not be correct.
[[nodiscard]] std::string wire_of(std::string_view args);

/// For the help of rio-cardsim: its kinds and their keys, a line for each.
[[nodiscard]] std::string cardsim_help();

}  // namespace rio::name
