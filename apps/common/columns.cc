#include "apps/common/columns.hpp"

#include <algorithm>

namespace rio::apps {

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string_view text, size_t columns) {
  std::string out(text);
  const size_t taken = columns_of(text);
  out.append(columns > taken ? columns - taken : 0, ' ');
  return out;
}

}  // namespace rio::apps
