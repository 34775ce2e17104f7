/// @file
/// The choice between packets and one kLongRequest for an access that is alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

/// Packets pass through the ring of frames, and each of their cache lines moves between two cores,
/// twice; a kLongRequest costs a system call, after which both programs find cold caches. Which is
/// faster depends on the machine, and on how far apart the cores are, which changes while processes
/// run. So both are timed, for several lengths: the first accesses go both ways in turn, and later
/// ones now and then. Several in a row go the same way, and the last of them are timed, since the
/// first one after a change finds code and data cold.
class WayChoice {
 public:
  static constexpr uint32_t kReadBytesMin = 65;  ///< shorter ones are one frame of few cache lines
  /// Shorter writes are one packet each, which the target's host need not call the system for.
  static constexpr uint32_t kWriteBytesMin = regs::kMessageBytesMax + 1;
  static constexpr uint32_t kBytesMax = 8 * regs::kMessageBytesMax;  ///< longer: a kLongRequest
  static constexpr uint32_t kRow = 4;             ///< accesses of a kind that go the same way
  static constexpr uint32_t kAtFirst = 4 * kRow;  ///< accesses of a kind that go both ways in turn
  static constexpr uint32_t kTimedEvery = 4 * kRow;   ///< of so many later ones, two are timed
  static constexpr uint32_t kOtherEvery = 64 * kRow;  ///< of so many, one row goes the other way
  /// After a longer pause of a kind, one of its next rows goes the other way.
  static constexpr uint64_t kPauseNs = 20'000'000;
  /// Time before an access that counts as its own, at most, from the end of the one before it: a
  /// system call leaves cold caches, which slow the program down.
  static constexpr uint64_t kBeforeNs = 2000;

  /// How to send an access.
  struct Turn {
    bool is_long;
    bool is_timed;         ///< call took() if it stays alone and succeeds
    bool is_before_timed;  ///< the next one of this kind is timed
  };

  /// Whether there is a choice for an access of so many bytes.
  [[nodiscard]] static constexpr bool decides(bool reads, uint32_t bytes) {
    return bytes <= kBytesMax && bytes >= (reads ? kReadBytesMin : kWriteBytesMin);
  }
  /// Choose for one access. @param bytes decides() holds. @param now_ns may be some microseconds
  /// old.
  [[nodiscard]] Turn next(bool reads, uint32_t bytes, uint64_t now_ns) {
    Kind& kind = kind_of(reads, bytes);
    if (now_ns - kind.last_ns > kPauseNs && kind.turns > kAtFirst) {
      kind.try_soon();
    }
    kind.last_ns = now_ns;
    const uint32_t turn = kind.turns++;
    const bool is_at_first = turn < kAtFirst;
    if (turn % kRow == 0) {
      const bool is_other =
          is_at_first ? turn / kRow % 2 == 1 : is_last_of(turn, kOtherEvery, kRow);
      kind.row_is_long =
          (is_at_first ? bytes >= kLongAtFirst : prefers_long(kind, bytes)) != is_other;
    }
    const uint32_t of = is_at_first ? kRow : kTimedEvery;
    return {kind.row_is_long, is_last_of(turn, of, kTimed), is_last_of(turn, of, kTimed + 1)};
  }
  /// A timed access has succeeded. @param bytes, is_long of its turn. @param ns from its first
  /// packet or request to the last answer, and up to kBeforeNs before it.
  void took(bool reads, uint32_t bytes, bool is_long, uint64_t ns) {
    Kind& kind = kind_of(reads, bytes);
    uint32_t& mean = kind.ns[is_long ? 1 : 0];
    // One process may have lost its core meanwhile: a single long time changes little.
    const auto capped =
        static_cast<uint32_t>(std::min<uint64_t>(ns, mean == 0 ? kNsMax : 2 * mean));
    if (mean == 0 || (kind.turns <= kAtFirst && capped < mean)) {
      mean = capped;  // the very first ones find cold caches
    } else if (capped < mean) {
      mean = mean / 2 + capped / 2;  // chance rarely makes an access faster
    } else if (kind.turns > kAtFirst) {
      mean = mean - mean / 4 + capped / 4;
    }
    if (kind.ns[is_long ? 0 : 1] > capped && kind.turns % kOtherEvery == 0) {
      kind.try_soon();  // the machine has changed
    }
  }

 private:
  static constexpr uint32_t kLongAtFirst = 16 * 1024;
  static constexpr uint32_t kShortBytes = 1024;  // reads up to here are a kind of their own
  static constexpr uint32_t kTimed = 2;          // accesses that are timed, the last ones of a row
  static constexpr uint64_t kNsMax = 100'000;

  struct Kind {
    uint32_t turns = 0;
    uint32_t ns[2] = {0, 0};  // mean of packets, and of a kLongRequest; 0: never timed
    bool row_is_long = false;
    uint64_t last_ns = 0;  // of next()

    /// Let one row of the next kTimedEvery + kRow accesses go the other way: the last row before a
    /// multiple of kOtherEvery, of which no access has gone yet.
    void try_soon() {
      turns = (turns + kRow - 1) & ~(kRow - 1);
      turns |= (kOtherEvery - 1) & ~(kTimedEvery - 1);
    }
  };

  /// Whether a turn is one of the last `count` of its `of`.
  [[nodiscard]] static constexpr bool is_last_of(uint32_t turn, uint32_t of, uint32_t count) {
    return turn % of >= of - count;
  }
  [[nodiscard]] static bool prefers_long(const Kind& kind, uint32_t bytes) {
    if (kind.ns[0] == kind.ns[1] || kind.ns[0] == 0 || kind.ns[1] == 0) {
      return bytes >= kLongAtFirst;
    }
    return kind.ns[1] < kind.ns[0];
  }
  [[nodiscard]] Kind& kind_of(bool reads, uint32_t bytes) {
    return kinds_[reads ? 1 : 0]
                 [bytes <= kShortBytes ? 0 : 1 + (bytes - 1) / regs::kMessageBytesMax];
  }

  std::array<std::array<Kind, 1 + kBytesMax / regs::kMessageBytesMax>, 2> kinds_{};
};

}  // namespace rio::model
