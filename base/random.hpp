/// @file
/// Seeded randomness: a seed gives the same numbers on every machine.
#pragma once

#include <cstdint>

namespace rio::base {

/// splitmix64 adds this to its state for each number: 2^64 divided by the golden ratio.
inline constexpr uint64_t kRandomStep = 0x9E3779B97F4A7C15u;

/// Spread what differs between two numbers over all bits: the output function of splitmix64. Any
/// thread.
[[nodiscard]] constexpr uint64_t mix64(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/// splitmix64: one word of state, and any seed is good. Not for keys: it can be computed back. One
/// thread.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() { return mix64(state_ += kRandomStep); }
  /// Uniform in 0 to n - 1. @param n at least 1.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
  /// @param p 0 to 1. @return true with this probability.
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

 private:
  uint64_t state_;
};

}  // namespace rio::base
