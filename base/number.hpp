/// @file
/// Numbers in text that a user wrote: strict, and one set of spellings everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rio::base {

/// Read the whole of `text` as a number: decimal digits, or "0x" and hexadecimal ones. No sign, no
/// blank, nothing behind. Any thread.
/// @param out set only on success.
/// @return false: it is no such number, or not from `least` to `most`.
[[nodiscard]] bool read_number(std::string_view text, uint64_t least, uint64_t most, uint64_t* out);

/// Read the whole of `text` as a number of bytes: as read_number(), and decimal digits may have a
/// suffix, of powers of 1024: K, M, G, T, with or without "i" or "iB" behind, in either case.
/// "KB" is refused: to some it is 1000. Any thread.
/// @param out set only on success.
/// @return false: it is no such number, or not from `least` to `most`.
[[nodiscard]] bool read_bytes(std::string_view text, uint64_t least, uint64_t most, uint64_t* out);

/// What a variable of the environment, or another text of a user, has to say.
struct NumberRule {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;
  bool is_bytes = false;  ///< as read_bytes() reads it, else as read_number() does
};

/// Read a number that a user gave under a name, and say what is wrong with it. Any thread.
/// @param text null or empty: not given, `*out` stays as it is.
/// @param out set only if the number is given and right.
/// @param error one line with the name, the text and the remedy; set only on failure.
/// @return 0, -EINVAL.
[[nodiscard]] int read_setting(const char* name, const char* text, const NumberRule& rule,
                               uint64_t* out, std::string* error);

/// Foreign text as it may be shown in a log line: cut, and without control characters.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace rio::base
