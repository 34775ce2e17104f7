/// @file
/// The bytes that tests send: 64-bit words, little endian, each of which follows from the first.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/random.hpp"

namespace rio::selftest {

/// Bytes that follow from one number. Constant, any thread. Hot where a program verifies.
class Pattern {
 public:
  explicit Pattern(uint64_t first_word) : first_word_(first_word) {}
  /// The bytes of thing `number` under a seed.
  Pattern(uint64_t seed, uint64_t number)
      : Pattern(base::mix64(base::mix64(seed + base::kRandomStep) ^ number)) {}

  [[nodiscard]] uint8_t byte(uint32_t at) const {
    return static_cast<uint8_t>((first_word_ + (at >> 3) * base::kRandomStep) >> (8 * (at & 7)));
  }

  /// @param bytes len_bytes of them, any alignment.
  void fill(uint8_t* bytes, uint32_t len_bytes) const {
    uint64_t word = first_word_;
    uint32_t at = 0;
    for (; at + 8 <= len_bytes; at += 8, word += base::kRandomStep) {
      std::memcpy(bytes + at, &word, sizeof word);
    }
    for (; at < len_bytes; ++at, word >>= 8) {
      bytes[at] = static_cast<uint8_t>(word);
    }
  }

  /// @return place of the first byte that differs, or len_bytes.
  [[nodiscard]] uint32_t first_wrong(const uint8_t* bytes, uint32_t len_bytes) const {
    uint64_t word = first_word_;
    uint32_t at = 0;
    for (; at + 8 <= len_bytes; at += 8, word += base::kRandomStep) {
      if (std::memcmp(bytes + at, &word, sizeof word) != 0) {
        break;
      }
    }
    for (uint32_t end = at + 8 < len_bytes ? at + 8 : len_bytes; at < end; ++at, word >>= 8) {
      if (bytes[at] != static_cast<uint8_t>(word)) {
        break;
      }
    }
    return at;
  }

 private:
  uint64_t first_word_;
};

}  // namespace rio::selftest
