/// @file
/// Which numbers of a flow have come: letters may overtake each other, so a window is kept.
#pragma once

#include <array>
#include <cstdint>

namespace rio::testpmd {

/// One writer. 1 KiB, no allocation.
class SequenceTracker {
 public:
  static constexpr uint64_t kWindow = 8192;  ///< numbers that may be apart and still be told

  enum class Seen : uint8_t {
    kInOrder,
    kLate,       ///< new, but a later one came first
    kDuplicate,  ///< came before, or is so old that it cannot be told from one that did
  };

  /// Hot when verifying. @param sequence 40 bits.
  Seen accept(uint64_t sequence) {
    if (sequence >= next_) [[likely]] {
      if (sequence - next_ >= kWindow) [[unlikely]] {
        // So many were refused, as while the link is down; the sender's books find others.
        bits_.fill(0);
        next_ = sequence + 1;
      }
      while (next_ <= sequence) {
        clear(next_++);
      }
      set(sequence);
      ++unique_;
      return Seen::kInOrder;
    }
    if (next_ - sequence > kWindow || test(sequence)) {
      return Seen::kDuplicate;
    }
    set(sequence);
    ++unique_;
    return Seen::kLate;
  }

  /// One past the highest number that came.
  [[nodiscard]] uint64_t next() const { return next_; }
  /// Different numbers that came.
  [[nodiscard]] uint64_t unique() const { return unique_; }
  /// Numbers below next() that did not.
  [[nodiscard]] uint64_t missing() const { return next_ - unique_; }

 private:
  static constexpr uint64_t kMask = kWindow - 1;
  void set(uint64_t n) { bits_[(n & kMask) >> 6] |= uint64_t{1} << (n & 63); }
  void clear(uint64_t n) { bits_[(n & kMask) >> 6] &= ~(uint64_t{1} << (n & 63)); }
  [[nodiscard]] bool test(uint64_t n) const {
    return (bits_[(n & kMask) >> 6] >> (n & 63) & 1) != 0;
  }

  uint64_t next_ = 0;
  uint64_t unique_ = 0;
  std::array<uint64_t, kWindow / 64> bits_{};
};

}  // namespace rio::testpmd
