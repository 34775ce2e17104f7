/// @file
/// Division by a number that stays the same, as one multiplication.
#pragma once

#include <cassert>
#include <cstdint>

namespace rio::sim {

/// A divisor, prepared. Exact for every 32-bit number and divisor. Any thread.
class Reciprocal {
 public:
  /// @param divisor at least 1.
  explicit constexpr Reciprocal(uint32_t divisor)
      : divisor_(divisor), factor_(UINT64_MAX / divisor) {
    assert(divisor != 0);
  }

  [[nodiscard]] constexpr uint32_t divisor() const { return divisor_; }
  /// @return number / divisor(), rounded down. The factor is too small by less than one part in
  /// 2^64; number + 1 in place of number makes up for it, and never reaches the next quotient.
  [[nodiscard]] constexpr uint32_t divide(uint32_t number) const {
    return static_cast<uint32_t>((Product{number} + 1) * factor_ >> 64);
  }
  [[nodiscard]] constexpr uint32_t modulo(uint32_t number) const {
    return number - divide(number) * divisor_;
  }

 private:
  __extension__ using Product = unsigned __int128;

  uint32_t divisor_;
  uint64_t factor_;
};

}  // namespace rio::sim
