#include "apps/tool/system/files.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "base/formatted.hpp"
#include "base/number.hpp"
#include "base/text_file.hpp"
#include "pmd/api/pci.hpp"

namespace rio::tool {

std::string text_of(const std::string& path) {
  std::string text;
  return pci::read_text(path, &text) == 0 ? std::string(base::trimmed(text)) : "";
}

std::optional<uint64_t> parse_number(const std::string& text) {
  uint64_t value = 0;
  return base::read_number(text, &value) ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> number_of(const std::string& path) {
  return parse_number(text_of(path));
}

std::string joined(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string field_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && base::trimmed(line.substr(0, colon)) == name) {
      return std::string(base::trimmed(line.substr(colon + 1)));
    }
  }
  return "";
}

std::string chosen_word(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = open == std::string::npos ? open : text.find(']', open);
  return close == std::string::npos ? std::string() : text.substr(open + 1, close - open - 1);
}

std::string size_text(uint64_t len_bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  auto value = static_cast<double>(len_bytes);
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = len_bytes % (uint64_t{1} << (10 * unit)) == 0;
  return base::formatted(whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
}

std::optional<uint64_t> parse_size(const std::string& text) {
  uint64_t value = 0;
  return base::read_bytes(text, 1, UINT64_MAX, &value) ? std::optional(value) : std::nullopt;
}

std::optional<unsigned> number_after(const std::string& name, const std::string& prefix) {
  if (name.rfind(prefix, 0) != 0) {
    return std::nullopt;
  }
  unsigned value = 0;
  return base::read_decimal(name.substr(prefix.size()), 0, 999'999'999, &value)
             ? std::optional(value)
             : std::nullopt;
}

}  // namespace rio::tool
