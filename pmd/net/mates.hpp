/// @file
/// Mates: ports of one process that stand in for each other, as the ports of a bond do.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace rio::pmd {

/// Tells that the port whose destID is at a distance is a mate of the ringing port: kMateDoorbell +
/// kMateMiddle + distance. A distance of 0 is about the ringing port itself: it also sends frames
/// whose source address is no card's, as bridges do.
inline constexpr uint16_t kMateDoorbell = 0x8000;
inline constexpr uint16_t kMateMiddle = 0x4000;

/// The doorbell that names a mate. @return 0: their destIDs are too far apart.
[[nodiscard]] constexpr uint16_t mate_doorbell(uint32_t port, uint32_t mate) {
  const int32_t distance = static_cast<int32_t>(mate) - static_cast<int32_t>(port);
  constexpr int32_t kMiddle = kMateMiddle;
  return distance < -kMiddle || distance >= kMiddle
             ? uint16_t{0}
             : static_cast<uint16_t>(kMateDoorbell + kMiddle + distance);
}
/// The mate that a doorbell names. @param info at least kMateDoorbell. @return beyond 65535: not a
/// destID.
[[nodiscard]] constexpr uint32_t mate_of(uint32_t port, uint16_t info) {
  return port + info - kMateDoorbell - kMateMiddle;
}

/// Pairs of a port and its mate, as ports have announced them. Zeroed memory is an empty set. Any
/// thread, any process.
class MateSet {
 public:
  static constexpr uint32_t kPairsMax = 256;

  /// Add a pair, unless kPairsMax are known.
  void add(uint32_t port, uint32_t mate) {
    if (has(port, mate)) {
      return;
    }
    for (uint32_t i = 0; i < kPairsMax; ++i) {
      uint64_t none = 0;
      if (pairs_[i].compare_exchange_strong(none, pair(port, mate), std::memory_order_relaxed)) {
        uint32_t used = used_.load(std::memory_order_relaxed);
        while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
        }
        return;
      }
    }
  }
  [[nodiscard]] bool has(uint32_t port, uint32_t mate) const {
    return !for_each([=](uint32_t p, uint32_t m) { return p != port || m != mate; });
  }
  /// Remove all pairs that one port has announced.
  void remove(uint32_t port) {
    for (auto& entry : pairs_) {
      uint64_t one = entry.load(std::memory_order_relaxed);
      if (one != 0 && port_of(one) == port) {
        entry.compare_exchange_strong(one, 0, std::memory_order_relaxed);
      }
    }
  }
  void clear() {
    for (auto& entry : pairs_) {
      entry.store(0, std::memory_order_relaxed);
    }
  }
  /// @param each called with a port and its mate; returns false to stop. @return whether all calls
  /// returned true.
  template <class Each>
  bool for_each(Each&& each) const {
    const uint32_t used = used_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < used; ++i) {
      const uint64_t one = pairs_[i].load(std::memory_order_relaxed);
      if (one != 0 && !each(port_of(one), static_cast<uint32_t>(one & 0xFFFF))) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr uint64_t kUsed = uint64_t{1} << 32;
  [[nodiscard]] static uint64_t pair(uint32_t port, uint32_t mate) {
    return kUsed | uint64_t{port} << 16 | mate;
  }
  [[nodiscard]] static uint32_t port_of(uint64_t pair) {
    return static_cast<uint32_t>(pair >> 16 & 0xFFFF);
  }

  std::atomic<uint32_t> used_;                          // entries that have ever been used
  std::array<std::atomic<uint64_t>, kPairsMax> pairs_;  // 0: free
};

}  // namespace rio::pmd
