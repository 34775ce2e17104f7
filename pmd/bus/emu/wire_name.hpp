/// @file
/// Which names wires and fabrics of emulated cards may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace rio::pmd {

inline constexpr size_t kWireNameMax = 63;

/// 1 to `longest` letters, digits, and the characters of `also`.
[[nodiscard]] constexpr bool is_name(std::string_view text, size_t longest, std::string_view also) {
  constexpr std::string_view kLettersAndDigits =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [=](char c) {
    return kLettersAndDigits.find(c) != std::string_view::npos ||
           also.find(c) != std::string_view::npos;
  });
}

[[nodiscard]] constexpr bool is_wire_name(std::string_view text) {
  return is_name(text, kWireNameMax, "_.-");
}
/// Of processes on one machine: it is the name of a folder.
[[nodiscard]] constexpr bool is_fabric_name(std::string_view text) {
  return is_wire_name(text) && text.front() != '.';
}

}  // namespace rio::pmd
