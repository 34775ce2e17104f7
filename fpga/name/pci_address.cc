#include "fpga/name/pci_address.hpp"

#include <charconv>
#include <cstdio>

namespace rio::name {
namespace {

/// Take the digits before `end` off `text`, and the separator at `end`.
/// @param digits at most so many. @param most the largest value.
template <typename Number>
[[nodiscard]] bool take_hex(std::string_view* text, size_t end, size_t digits, uint32_t most,
                            Number* out) {
  uint32_t value = 0;
  const char* const behind = text->data() + end;
  const auto [at, error] = std::from_chars(text->data(), behind, value, 16);
  if (end == 0 || end > digits || error != std::errc{} || at != behind || value > most) {
    return false;
  }
  *out = static_cast<Number>(value);
  text->remove_prefix(end == text->size() ? end : end + 1);
  return true;
}

}  // namespace

std::string PciAddress::text() const {
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", domain, unsigned{bus}, unsigned{device},
                unsigned{function});
  return text;
}

bool read_pci_address(std::string_view text, PciAddress* out) {
  PciAddress read;
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second != std::string_view::npos && !take_hex(&text, first, 8, UINT32_MAX, &read.domain)) {
    return false;
  }
  if (first != std::string_view::npos && !take_hex(&text, text.find(':'), 2, 0xFF, &read.bus)) {
    return false;
  }
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || !take_hex(&text, dot, 2, 31, &read.device) ||
      !take_hex(&text, text.size(), 1, 7, &read.function)) {
    return false;
  }
  *out = read;
  return true;
}

}  // namespace rio::name
