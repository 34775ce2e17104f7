/// @file
/// Registers by name: "id.magic", "port.link", "qp[0].ring_status[3]". Case does not matter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fpga/regs/gen/rio_names.hpp"

namespace rio::pmd {

class Card;

/// One word of the BAR with its name.
struct RegWord {
  const regs::names::RegName* reg = nullptr;
  uint32_t instance = 0;
  uint32_t index = 0;
  [[nodiscard]] uint32_t offset() const {
    return reg->offset + instance * reg->instance_stride + index * reg->stride;
  }
  [[nodiscard]] std::string name() const;
};

/// Whether `text` begins so, be the letters large or small.
[[nodiscard]] bool begins_with(std::string_view text, std::string_view prefix);

/// Find a register. @param text foreign: a name, or an offset in the BAR. @return 0, or -EINVAL
/// with the nearest names in `error`.
[[nodiscard]] int find_register(std::string_view text, RegWord* out, std::string* error);

/// "MBAUD=3125 UP=1" for a word with fields, "" for others.
[[nodiscard]] std::string fields_text(std::span<const regs::names::FieldName> fields,
                                      uint64_t word);

/// The words that the card has (blocks that it lacks are left out) and whose name begins with
/// `prefix`, in the order of the register map.
[[nodiscard]] std::vector<RegWord> words_of(const Card& card, std::string_view prefix);

}  // namespace rio::pmd
