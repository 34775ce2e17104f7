/// @file
/// Parse numbers in text that a user wrote: strictly, with one set of spellings everywhere.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace rio::base {

/// Read the whole of `text` as a number: decimal digits, or "0x" and hexadecimal digits. No sign,
/// no blank, nothing after it. Any thread.
/// @param out set only on success.
/// @return false: it is not such a number, or is outside `least` to `most`.
[[nodiscard]] bool read_number(std::string_view text, uint64_t least, uint64_t most, uint64_t* out);

/// Read a number, as for 64 bits, into a narrower type. @param most is of that type.
template <std::integral Number>
[[nodiscard]] bool read_number(std::string_view text, uint64_t least, uint64_t most, Number* out) {
  uint64_t value = 0;
  const bool is_good = read_number(text, least, most, &value);
  *out = is_good ? static_cast<Number>(value) : *out;
  return is_good;
}

/// Read any number that its type can hold.
template <std::unsigned_integral Number>
[[nodiscard]] bool read_number(std::string_view text, Number* out) {
  return read_number(text, 0, std::numeric_limits<Number>::max(), out);
}

/// Read decimal digits only, where "0x1" would mean something else: a list of CPUs is no mask.
template <std::unsigned_integral Number>
[[nodiscard]] bool read_decimal(std::string_view text, uint64_t least, uint64_t most, Number* out) {
  return text.find_first_of("xX") == std::string_view::npos && read_number(text, least, most, out);
}

/// Read a list of at most 65536 numbers, and rising ranges of them, such as "1,3-5". Any thread.
/// @param read reads one number. @param noun of a number, for the error text: "CPU number".
/// @param out in the order of the text, doubles kept; set only on success.
/// @param problem what is wrong with the list; set only on failure.
/// @return false: it is not such a list.
[[nodiscard]] bool read_ranges(std::string_view text, char separator, const char* noun,
                               bool (*read)(std::string_view text, uint32_t* out),
                               std::vector<uint32_t>* out, std::string* problem);

/// Read the whole of `text` as hexadecimal digits without "0x", as parts of a PCI address are
/// written. Any thread.
/// @param out set only on success.
/// @return false: there is something else in it, or it is above `most`.
[[nodiscard]] bool read_hex(std::string_view text, uint64_t most, uint64_t* out);

/// Read the whole of `text` as a decimal fraction, such as "0.25" or "1e-6". Any thread.
/// @param out set only on success.
/// @return false: it is no such number, or is outside `least` to `most`.
[[nodiscard]] bool read_fraction(std::string_view text, double least, double most, double* out);

/// Read the whole of `text` as a number of bytes: read_number()'s spellings, and decimal digits
/// with a suffix for powers of 1024: K, M, G, T, each alone or followed by "i" or "iB", in either
/// case. "KB" is refused, because some readers take it for 1000. Any thread.
/// @param out set only on success.
/// @return false: it is not such a number, or is outside `least` to `most`.
[[nodiscard]] bool read_bytes(std::string_view text, uint64_t least, uint64_t most, uint64_t* out);

/// Range and spelling of a number in an environment variable, or in other text from a user.
struct NumberRule {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;
  bool is_bytes = false;  ///< read by read_bytes(), else by read_number()
};

/// Read a number that a user gave under a name, with an error text for the user. Any thread.
/// @param text null or empty: not given, `*out` stays as it is.
/// @param out set only if a valid number is given.
/// @param error one line with the name, the text and the remedy; set only on failure.
/// @return 0, -EINVAL.
[[nodiscard]] int read_setting(const char* name, const char* text, const NumberRule& rule,
                               uint64_t* out, std::string* error);

/// Whether a text is a name: 1 to `longest` letters, digits, and characters of `also`. Any thread.
[[nodiscard]] bool is_name(std::string_view text, size_t longest, std::string_view also);

/// Foreign text made fit for a log line and a terminal: printable ASCII, at most 80 characters.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace rio::base
