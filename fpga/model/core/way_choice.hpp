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
/// twice; a kLongRequest costs a system call. Which is faster depends on how far apart the cores
/// are, and that changes while processes run. So both are timed, for each number of packets: the
/// first accesses go both ways in turn, and later ones now and then.
class WayChoice {
 public:
  /// Accesses of fewer bytes are one packet each; of more, a kLongRequest is never slower.
  static constexpr uint32_t kBytesMin = regs::kMessageBytesMax + 1;
  static constexpr uint32_t kBytesMax = 8 * regs::kMessageBytesMax;
  static constexpr uint32_t kAtFirst = 8;      ///< accesses of a kind that go both ways in turn
  static constexpr uint32_t kTimedEvery = 8;   ///< later accesses of a kind
  static constexpr uint32_t kOtherEvery = 64;  ///< go the other way, to learn what it costs now
  /// After a longer pause of a kind, one of the next kTimedEvery accesses goes the other way.
  static constexpr uint64_t kPauseNs = 20'000'000;

  /// How to send an access.
  struct Turn {
    bool is_long;
    bool is_timed;  ///< call took() if it stays alone and succeeds
  };

  /// Whether there is a choice for an access of so many bytes.
  [[nodiscard]] static constexpr bool decides(uint32_t bytes) {
    return bytes - kBytesMin <= kBytesMax - kBytesMin;
  }
  /// Choose for one access. @param bytes decides() holds. @param now_ns may be some microseconds
  /// old.
  [[nodiscard]] Turn next(bool reads, uint32_t bytes, uint64_t now_ns) {
    Kind& kind = kind_of(reads, bytes);
    if (now_ns - kind.last_ns > kPauseNs && kind.turns > kAtFirst) {
      kind.try_soon();
    }
    kind.last_ns = now_ns;
    const uint32_t turn = ++kind.turns;
    const bool is_long = prefers_long(kind, bytes);
    if (turn <= kAtFirst) {
      return {(bytes >= kLongAtFirst) == (turn % 2 == 1), true};
    }
    return {is_long != (turn % kOtherEvery == 0), turn % kTimedEvery == 0};
  }
  /// A timed access has succeeded. @param bytes, is_long of its turn. @param ns from its first
  /// packet or request to the last answer.
  void took(bool reads, uint32_t bytes, bool is_long, uint64_t ns) {
    Kind& kind = kind_of(reads, bytes);
    uint32_t& mean = kind.ns[is_long ? 1 : 0];
    // One process may have lost its core meanwhile: a single long time changes little.
    const auto capped =
        static_cast<uint32_t>(std::min<uint64_t>(ns, mean == 0 ? kNsMax : 2 * mean));
    if (mean == 0 || (kind.turns <= kAtFirst && capped < mean)) {
      mean = capped;  // the very first ones find cold caches
    } else if (capped < mean) {
      mean = mean / 2 + capped / 2;  // no chance makes an access faster
    } else if (kind.turns > kAtFirst) {
      mean = mean - mean / 4 + capped / 4;
    }
    if (kind.ns[is_long ? 0 : 1] > capped && kind.turns % kOtherEvery == 0) {
      kind.try_soon();  // the machine has changed
    }
  }

 private:
  static constexpr uint32_t kLongAtFirst = 16 * 1024;
  static constexpr uint64_t kNsMax = 100'000;

  struct Kind {
    uint32_t turns = 0;
    uint32_t ns[2] = {0, 0};  // mean of packets, and of a kLongRequest; 0: never timed
    uint64_t last_ns = 0;     // of next()

    /// Let one of the next kTimedEvery accesses go the other way.
    void try_soon() { turns |= (kOtherEvery - 1) & ~(kTimedEvery - 1); }
  };

  [[nodiscard]] static bool prefers_long(const Kind& kind, uint32_t bytes) {
    if (kind.ns[0] == kind.ns[1] || kind.ns[0] == 0 || kind.ns[1] == 0) {
      return bytes >= kLongAtFirst;
    }
    return kind.ns[1] < kind.ns[0];
  }
  [[nodiscard]] Kind& kind_of(bool reads, uint32_t bytes) {
    return kinds_[reads ? 1 : 0][(bytes - 1) / regs::kMessageBytesMax];
  }

  std::array<std::array<Kind, kBytesMax / regs::kMessageBytesMax>, 2> kinds_{};
};

}  // namespace rio::model
