/// @file
/// Text in columns, as a terminal shows it.
#pragma once

#include <string>
#include <string_view>

namespace rio::apps {

/// Columns that UTF-8 text of single-width characters takes: one for each but continuation bytes.
[[nodiscard]] size_t columns_of(std::string_view text);
/// The text with blanks behind it, so that it takes at least `columns`.
[[nodiscard]] std::string padded(std::string_view text, size_t columns);
/// "1 switch", "2 switches".
[[nodiscard]] inline std::string counted(size_t count, const char* one, const char* many) {
  return std::to_string(count) + ' ' + (count == 1 ? one : many);
}

}  // namespace rio::apps
