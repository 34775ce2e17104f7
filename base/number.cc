#include "base/number.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

namespace rio::base {
namespace {

[[nodiscard]] bool digits(std::string_view text, int base, uint64_t* out) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *out, base);
  return error == std::errc{} && at == end;
}

[[nodiscard]] bool is_hex(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("0X");
}

[[nodiscard]] bool any_number(std::string_view text, uint64_t* out) {
  return is_hex(text) ? digits(text.substr(2), 16, out) : digits(text, 10, out);
}

/// Set `*out` to a value that was read, if it is in its range. @return whether it is.
template <class Number>
[[nodiscard]] bool take(Number value, Number least, Number most, Number* out) {
  if (!(value >= least && value <= most)) {  // "not a number" fails both comparisons
    return false;
  }
  *out = value;
  return true;
}

[[nodiscard]] char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// @return the power of two that a suffix stands for; -1: not a suffix.
[[nodiscard]] int shift_of(std::string_view suffix) {
  std::string unit(suffix);
  std::ranges::transform(unit, unit.begin(), lower);
  const size_t at = unit.empty() ? std::string::npos : std::string_view("kmgt").find(unit.front());
  unit.erase(0, 1);
  const bool is_unit = unit.empty() || unit == "i" || unit == "ib";
  return at != std::string::npos && is_unit ? static_cast<int>(10 * (at + 1)) : -1;
}

}  // namespace

bool read_number(std::string_view text, uint64_t least, uint64_t most, uint64_t* out) {
  uint64_t value = 0;
  return any_number(text, &value) && take(value, least, most, out);
}

bool read_ranges(std::string_view text, char separator, const char* noun,
                 bool (*read)(std::string_view text, uint32_t* out), std::vector<uint32_t>* out,
                 std::string* problem) {
  constexpr size_t kMost = 65536;
  const auto read_one = [&](std::string_view one, uint32_t* value) {
    const bool is_good = read(one, value);
    if (!is_good) {
      *problem =
          one.empty() ? "a number is missing" : '"' + std::string(one) + "\" is not a " + noun;
    }
    return is_good;
  };
  std::vector<uint32_t> list;
  for (size_t at = 0; at <= text.size();) {
    const std::string_view part = text.substr(at, text.find(separator, at) - at);
    const size_t dash = part.find('-');
    uint32_t first = 0;
    uint32_t last = 0;
    if (!read_one(part.substr(0, dash), &first) ||
        !read_one(dash == part.npos ? part : part.substr(dash + 1), &last)) {
      return false;
    }
    if (last < first) {
      *problem = "the range " + std::string(part) + " falls";
      return false;
    }
    if (last - first >= kMost - list.size()) {
      *problem = "it is too long";
      return false;
    }
    for (uint64_t value = first; value <= last; ++value) {
      list.push_back(static_cast<uint32_t>(value));
    }
    at += part.size() + 1;
  }
  *out = std::move(list);
  return true;
}

bool read_hex(std::string_view text, uint64_t most, uint64_t* out) {
  uint64_t value = 0;
  return digits(text, 16, &value) && take(value, uint64_t{0}, most, out);
}

bool read_fraction(std::string_view text, double least, double most, double* out) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end && take(value, least, most, out);
}

bool read_bytes(std::string_view text, uint64_t least, uint64_t most, uint64_t* out) {
  const size_t behind = text.find_first_not_of("0123456789");
  if (is_hex(text) || behind == std::string_view::npos) {
    return read_number(text, least, most, out);
  }
  uint64_t value = 0;
  const int shift = shift_of(text.substr(behind));
  return shift >= 0 && digits(text.substr(0, behind), 10, &value) && value <= UINT64_MAX >> shift &&
         take(value << shift, least, most, out);
}

int read_setting(const char* name, const char* text, const NumberRule& rule, uint64_t* out,
                 std::string* error) {
  if (text == nullptr || *text == '\0') {
    return 0;
  }
  if (rule.is_bytes ? read_bytes(text, rule.least, rule.most, out)
                    : read_number(text, rule.least, rule.most, out)) {
    return 0;
  }
  *error = std::string(name) + " is \"" + printable(text) + "\"; it must be a number";
  *error += rule.is_bytes ? " of bytes" : "";
  if (rule.least != 0 || rule.most != UINT64_MAX) {
    *error += " from " + std::to_string(rule.least) + " to " + std::to_string(rule.most);
  }
  *error += rule.is_bytes ? ", such as 65536 or 64K" : "";
  return -EINVAL;
}

bool is_name(std::string_view text, size_t longest, std::string_view also) {
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [also](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           also.find(c) != std::string_view::npos;
  });
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 80;
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out;
}

}  // namespace rio::base
