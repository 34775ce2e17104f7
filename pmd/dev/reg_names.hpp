/// @file
/// Registers by name: "id.magic", "port.link", "qp[0].ring_status[3]". Case does not matter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fpga/regs/gen/rio_names.hpp"

namespace rio::pmd {

/// One word of the BAR and what it is called.
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

/// Find a register. @param text foreign: a name, or an offset in the BAR.
/// @return 0, or -EINVAL with the nearest there is in `error`.
[[nodiscard]] int find_register(std::string_view text, RegWord* out, std::string* error);

/// "MBAUD=3125 UP=1" for a word with fields, else nothing.
[[nodiscard]] std::string fields_text(std::span<const regs::names::FieldName> fields,
                                      uint64_t word);

}  // namespace rio::pmd
