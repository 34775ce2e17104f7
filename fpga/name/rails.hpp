/// @file
/// Names of several cards that a program uses as one: "emu:x+emu:y".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fpga/name/card_name.hpp"

namespace rio::name {

/// Most cards in one name.
inline constexpr size_t kCardsMax = 8;

/// Parse the names of one card or several, as a program opens them. A '+' divides names only where
/// the name of a card begins behind it, since a path may have one, too. Any thread.
/// @param text foreign. @param names the text of each card; set on success only, as `out`.
/// @param error one line: what is wrong, and what is allowed.
/// @return 0; -EINVAL: as parse(), too many cards, or one that is named twice.
[[nodiscard]] int parse_cards(std::string_view text, std::vector<std::string>* names,
                              std::vector<CardName>* out, std::string* error);

}  // namespace rio::name
