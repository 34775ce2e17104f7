/// @file
/// Hashes that name things in packets and files: every machine and every release computes the same.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace rio::base {

/// FNV-1a of a text's bytes, in 32 or 64 bits. Not for tables that strangers fill: it is no secret.
/// Any thread.
template <std::unsigned_integral Word>
[[nodiscard]] constexpr Word fnv1a(std::string_view text) {
  static_assert(sizeof(Word) == 4 || sizeof(Word) == 8);
  constexpr bool kIsWide = sizeof(Word) == 8;
  constexpr auto kPrime = static_cast<Word>(kIsWide ? 1099511628211u : 16777619u);
  auto hash = static_cast<Word>(kIsWide ? 14695981039346656037u : 2166136261u);
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * kPrime;
  }
  return hash;
}

}  // namespace rio::base
