/// @file
/// The order of bundles, which letters lose.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "pmd/net/addresses.hpp"
#include "pmd/net/bundle.hpp"

namespace rio::pmd {

/// A port's knowledge of a sender of bundles.
struct Source {
  uint32_t dest_id;
  uint16_t epoch;
  uint16_t expected;  ///< number of the next bundle
  bool known;         ///< epoch and expected mean something
  uint32_t parked_count;
  uint16_t awaited;      ///< what was expected
  uint64_t since_ticks;  ///< when the first of those began to wait for it
  rte_mbuf* parked;      ///< bundles that came too early, by number; next of another by mbuf's next
  // A frame of which parts are here.
  rte_mbuf* partial;
  rte_mbuf* partial_last;
  uint32_t partial_total_bytes;
  BundleHeader partial_header;  ///< of the bundle that its last part came in
  uint16_t queue;               ///< that it is for
};

/// Sources by destID, as many as there is place for. One thread at a time; zero memory is empty.
class Sources {
 public:
  static constexpr uint32_t kMax = 4096;

  /// Hot. @return null: no place for another one.
  [[nodiscard]] Source* find(uint32_t dest_id) {
    const uint16_t index = index_[dest_id];
    return index != 0 ? &sources_[index - 1] : add(dest_id);
  }
  template <class Each>
  void for_each(Each&& each) {
    for (uint32_t i = 0; i < count_; ++i) {
      each(sources_[i]);
    }
  }

 private:
  [[nodiscard]] Source* add(uint32_t dest_id) {
    if (count_ == kMax) {
      return nullptr;
    }
    Source& source = sources_[count_++];
    source.dest_id = dest_id;
    index_[dest_id] = static_cast<uint16_t>(count_);
    return &source;
  }

  uint32_t count_ = 0;
  std::array<uint16_t, kNetDestIds> index_{};  // one more than it is
  std::array<Source, kMax> sources_{};
};

/// Decides when a bundle is looked at. Bundles that came too early are parked, in their buffers,
/// until those before them are here, or are given up. One thread at a time.
class Order {
 public:
  enum class Turn : uint8_t { kNow, kLate, kParked };

  /// @param parked_max buffers that may be parked, but for one that is next() at once. @param
  /// wait_ticks TSC ticks that one waits.
  void start(uint32_t parked_max, uint64_t wait_ticks) {
    parked_max_ = parked_max;
    wait_ticks_ = wait_ticks;
  }
  /// Hot. A bundle has come. @param buffer if it is parked it is ours until next().
  [[nodiscard]] Turn turn_of(Source& source, const BundleHeader& header, rte_mbuf* buffer) {
    if (source.known && header.epoch == source.epoch && header.number == source.expected)
        [[likely]] {
      ++source.expected;
      return Turn::kNow;
    }
    return turn_of_other(source, header, buffer);
  }
  /// Hot. A bundle of a source was looked at: its next one may be here.
  void looked_at(Source& source) {
    if (source.parked_count != 0) [[unlikely]] {
      look_for_next(source);
    }
  }
  /// Hot. Whether next() has something.
  [[nodiscard]] bool has_next() const { return ready_ != nullptr; }
  /// A parked bundle whose turn it is. has_next().
  [[nodiscard]] rte_mbuf* next(Source** source);
  /// Hot. Now and then: give up bundles that were waited for too long.
  void look_at_the_clock() {
    if (parked_ != 0) [[unlikely]] {
      give_up_waiting(false);
    }
  }
  /// If the wait is over, or `at_once`: has_next(), if anything is parked.
  void give_up_waiting(bool at_once);

  /// Bundles that are parked.
  [[nodiscard]] uint32_t parked() const { return parked_; }

 private:
  static constexpr uint32_t kWaitingMax = 8;  // sources

  [[nodiscard]] Turn turn_of_other(Source& source, const BundleHeader& header, rte_mbuf* buffer);
  [[nodiscard]] bool park(Source& source, uint16_t number, rte_mbuf* buffer);
  static void begin_wait(Source& source);
  void look_for_next(Source& source);

  Source* ready_ = nullptr;
  uint32_t parked_ = 0;
  uint32_t parked_max_ = 0;
  uint64_t wait_ticks_ = 0;
  std::array<Source*, kWaitingMax> waiting_{};
};

}  // namespace rio::pmd
