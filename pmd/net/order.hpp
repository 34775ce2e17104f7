/// @file
/// Restores the order of bundles: messages on different letters overtake each other.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "pmd/net/bundle.hpp"
#include "pmd/net/peers.hpp"

namespace rio::pmd {

/// The state of one sender of bundles.
struct Source {
  uint32_t dest_id;
  uint16_t epoch;
  uint16_t expected;  ///< number of the next bundle
  bool known;         ///< epoch and expected are valid
  uint32_t parked_count;
  uint16_t awaited;      ///< value of `expected` when the wait began
  uint64_t since_ticks;  ///< when the wait for `awaited` began
  rte_mbuf* parked;      ///< bundles that came too early, by number, linked by mbuf's next
  // A frame with some of its parts.
  rte_mbuf* partial;
  rte_mbuf* partial_last;
  uint32_t partial_total_bytes;
  BundleHeader partial_header;  ///< of the bundle that held the frame's last part
  uint16_t queue;               ///< queue that the frame is for
};

/// Sources by destID, up to kMax. One thread at a time; zeroed memory is empty.
class Sources {
 public:
  static constexpr uint32_t kMax = 4096;

  /// Hot. Find or add a source. @return null: there is no place for another one.
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
  std::array<uint16_t, kNetDestIds> index_{};  // index into sources_ plus 1; 0: none
  std::array<Source, kMax> sources_{};
};

/// Decides when a bundle is processed. Bundles that came too early are parked, in their buffers,
/// until the earlier ones are here or are given up. One thread at a time.
class Order {
 public:
  enum class Turn : uint8_t { kNow, kLate, kParked };

  /// @param parked_max buffers that may be parked, besides one that next() returns at once. @param
  /// wait_ticks longest wait for a bundle, in TSC ticks.
  void start(uint32_t parked_max, uint64_t wait_ticks) {
    parked_max_ = parked_max;
    wait_ticks_ = wait_ticks;
  }
  /// Hot. Decide about a bundle that has arrived. @param buffer belongs to this object while it is
  /// parked.
  [[nodiscard]] Turn turn_of(Source& source, const BundleHeader& header, rte_mbuf* buffer) {
    if (source.known && header.epoch == source.epoch && header.number == source.expected)
        [[likely]] {
      ++source.expected;
      return Turn::kNow;
    }
    return turn_of_slow(source, header, buffer);
  }
  /// Hot. A bundle of a source was processed: its next one may be parked here.
  void looked_at(Source& source) {
    if (source.parked_count != 0) [[unlikely]] {
      look_for_next(source);
    }
  }
  /// Hot. Whether next() has a bundle.
  [[nodiscard]] bool has_next() const { return ready_ != nullptr; }
  /// Get a parked bundle whose turn has come. @pre has_next().
  [[nodiscard]] rte_mbuf* next(Source** source);
  /// Hot. Call it now and then: gives up bundles that have been awaited for too long.
  void check_clock() {
    if (parked_ != 0) [[unlikely]] {
      give_up_waiting(false);
    }
  }
  /// If the wait is over, or `at_once`, and anything is parked, make next() return it.
  void give_up_waiting(bool at_once);

  /// Number of parked bundles.
  [[nodiscard]] uint32_t parked() const { return parked_; }

 private:
  static constexpr uint32_t kWaitingMax = 8;  // sources

  [[nodiscard]] Turn turn_of_slow(Source& source, const BundleHeader& header, rte_mbuf* buffer);
  [[nodiscard]] bool park(Source& source, uint16_t number, rte_mbuf* buffer);
  static void begin_wait(Source& source);
  void look_for_next(Source& source);

  Source* ready_ = nullptr;
  uint32_t parked_ = 0;
  uint32_t parked_max_ = 0;
  uint64_t wait_ticks_ = 0;
  std::array<Source*, kWaitingMax> waiting_{};
};

/// The header of a bundle that was checked when it arrived: it lies at the start of the buffer's
/// data.
[[nodiscard]] inline BundleHeader header_of(const rte_mbuf* buffer) {
  BundleHeader header{};
  static_cast<void>(
      BundleHeader::decode(load_word(rte_pktmbuf_mtod(buffer, const uint8_t*)), &header));
  return header;
}

}  // namespace rio::pmd
