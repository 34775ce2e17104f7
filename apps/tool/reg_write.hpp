/// @file
/// A change of one register: planned, so that a dry run can show it, then carried out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pmd/dev/card.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::tool {

/// A word to be written.
struct RegWrite {
  pmd::RegWord word;
  uint32_t before = 0;
  uint32_t value = 0;
};

/// Work out a write; reads the register, writes nothing.
/// @param values foreign: one number, or any of FIELD=NUMBER, which leave the other fields alone.
/// @return 0; -EPERM (the card's word), -EINVAL (no such field, too large), or as
/// Card::reg_read(); said on stderr.
[[nodiscard]] int plan_write(pmd::Card& card, const pmd::RegWord& word,
                             const std::vector<std::string>& values, RegWrite* out);

/// Write, and read back. @return 0, -EIO (the register holds something else afterwards), or as
/// Card::reg_write(); said on stderr.
[[nodiscard]] int carry_out(pmd::Card& card, const RegWrite& write);

}  // namespace rio::tool
