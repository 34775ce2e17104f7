/// @file
/// Registers of a card for people: how one is written down, why it cannot be had.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pmd/dev/reg_names.hpp"

namespace rio::apps {

/// "  0x000004  id.block  0x00000201  type=1 version=2 instance=0", without a newline.
[[nodiscard]] std::string word_line(const pmd::RegWord& word, uint32_t value);

/// Why Card::reg_read() or reg_write() of a word failed, and the remedy. @param what "read" or
/// "write". @param rc what it returned.
[[nodiscard]] std::string access_error(const char* what, const pmd::RegWord& word, int rc);

/// For a prefix that no register has.
[[nodiscard]] std::string no_such_prefix(std::string_view prefix);

}  // namespace rio::apps
