/// @file
/// The bytes that tests send: 64-bit words, little endian, each of which follows from the first.
#pragma once

#include <cstdint>
#include <cstring>

namespace rio::selftest {

/// Bytes that follow from one number. Constant, any thread. Hot where a program verifies.
class Pattern {
 public:
  explicit Pattern(uint64_t first_word) : first_word_(first_word) {}
  /// The bytes of thing `number` under a seed.
  Pattern(uint64_t seed, uint64_t number) : Pattern(mix(mix(seed + kStep) ^ number)) {}

  /// Spread a number over 64 bits (splitmix64), so that near numbers give far patterns.
  [[nodiscard]] static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  [[nodiscard]] uint8_t byte(uint32_t at) const {
    return static_cast<uint8_t>((first_word_ + (at >> 3) * kStep) >> (8 * (at & 7)));
  }

  /// @param bytes len_bytes of them, any alignment.
  void fill(uint8_t* bytes, uint32_t len_bytes) const {
    uint64_t word = first_word_;
    uint32_t at = 0;
    for (; at + 8 <= len_bytes; at += 8, word += kStep) {
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
    for (; at + 8 <= len_bytes; at += 8, word += kStep) {
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

  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;  ///< between two words

 private:
  uint64_t first_word_;
};

}  // namespace rio::selftest
