/// @file
/// How the control path takes a queue from a thread that polls it.
#pragma once

#include <rte_pause.h>

#include <atomic>
#include <cstdint>

namespace rio::pmd {

/// Whose turn it is at a queue: a burst takes it when it begins and gives it when it ends; the
/// control path takes it for good, to close the queue or to put another in its place. It is no
/// lock: no burst waits. One that does not get its turn does nothing, returns 0, and comes
/// again. Bursts of different threads or processes at one queue are kept apart, too, though only
/// one may poll it.
///
/// Lies beside what its bursts write, or alone in a cache line; if the queue is polled by other
/// processes, in memory that they share (Bus::shared_alloc()). A process that dies inside leaves it
/// taken.
class Turn {
 public:
  /// Hot. @return false: a burst is inside, or it was taken for good.
  [[nodiscard]] bool take() {
    if (wanted_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      return false;  // else who polls without a pause might never let the control path in
    }
    return take_now();
  }
  /// Hot. take() for a caller that would lose its frames, while others are in and out at once:
  /// tries for some microseconds at most.
  [[nodiscard]] bool take_soon() {
    constexpr uint32_t kTriesMax = 500;
    for (uint32_t tries = 0; tries < kTriesMax; ++tries) {
      if (take()) {
        return true;
      }
      if (wanted_.load(std::memory_order_relaxed) != 0) {
        return false;
      }
      rte_pause();
    }
    return false;
  }
  /// Hot, and of the control path. @pre it is the caller's.
  void give() {
    // release: stores made inside are visible to the next taker; pairs with take_now().
    inside_.store(0, std::memory_order_release);
  }
  /// Control path, one thread at a time: from now on take() fails, until give(). Waits for the
  /// burst inside. @return false: it did not come out in time, and take() works as before.
  [[nodiscard]] bool take_for_good(uint32_t timeout_ms);
  /// Hot. Whether take() would have worked just now.
  [[nodiscard]] bool is_free() const {
    return (inside_.load(std::memory_order_relaxed) | wanted_.load(std::memory_order_relaxed)) == 0;
  }

 private:
  [[nodiscard]] bool take_now() {
    // acquire: pairs with give().
    return inside_.exchange(1, std::memory_order_acquire) == 0;
  }

  std::atomic<uint32_t> inside_{0};  // alone says whose turn it is
  std::atomic<uint32_t> wanted_{0};  // by the control path: a hint, read without order
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "other processes use it");

/// The turn of one burst, if it gets it.
class InTurn {
 public:
  explicit InTurn(Turn& turn) : turn_(turn), mine_(turn.take()) {}
  ~InTurn() {
    if (mine_) {
      turn_.give();
    }
  }
  InTurn(const InTurn&) = delete;
  InTurn& operator=(const InTurn&) = delete;
  [[nodiscard]] explicit operator bool() const { return mine_; }

 private:
  Turn& turn_;
  bool mine_;
};

}  // namespace rio::pmd
