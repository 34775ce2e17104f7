/// @file
/// Keeps a card to one thread at a time, without a locked instruction for the thread that steps it.
///
/// Such an instruction waits until all earlier stores are in the cache, and the last of them are on
/// their way to another core: each short message would take one cache line's journey longer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace rio::model {

/// A lock that leans toward the thread that takes it again and again. That thread stores that it is
/// inside and then checks for other claims. Another thread that wants the card takes the preference
/// away and makes all threads' stores visible (membarrier), which is slow and rare.
class CardLock {
 public:
  /// To be cleared by unlock().
  using Held = std::atomic<bool>*;

  CardLock();
  CardLock(const CardLock&) = delete;
  CardLock& operator=(const CardLock&) = delete;

  /// Any thread; does not wait. @param thread tells threads apart, not null. @return null: another
  /// thread is inside.
  [[nodiscard]] Held try_lock(const char* thread) {
    // acquire: the seat's thread; pairs with the release in try_lock_shared().
    Seat* const seat = preferred_.load(std::memory_order_acquire);
    if (seat != nullptr && seat->thread == thread) [[likely]] {
      if (seat->inside.load(std::memory_order_relaxed)) {
        return nullptr;
      }
      if (const Held held = sit_down(seat); held != nullptr) [[likely]] {
        return held;
      }
    }
    return try_lock_shared(thread);
  }
  /// Hot. The same for the thread that it leans to, without a call. @return null: try_lock() may
  /// give it.
  [[nodiscard]] Held try_lock_preferred(const char* thread) {
    Seat* const seat = preferred_.load(std::memory_order_acquire);  // as in try_lock()
    if (seat == nullptr || seat->thread != thread || seat->inside.load(std::memory_order_relaxed))
        [[unlikely]] {
      return nullptr;
    }
    return sit_down(seat);
  }

  /// Any thread. Waits; a thread is inside for at most one step.
  [[nodiscard]] Held lock();

  /// @param held what try_lock() or lock() gave, not null.
  static void unlock(Held held) {
    // release: what was done inside; pairs with the acquires in take_preference(), lock() and
    // try_lock_shared().
    held->store(false, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kTimesToLean = 1024;

  /// Of one thread, for as long as the lock lives: a thread that was held up in try_lock() may
  /// still write it long after another one is preferred.
  struct Seat {
    const char* thread = nullptr;
    std::atomic<bool> inside{false};
  };

  /// By its thread, which is not inside. @return null: it is not preferred any more.
  [[nodiscard]] Held sit_down(Seat* seat) {
    seat->inside.store(true, std::memory_order_relaxed);
    // The processor may let the load pass the store: the membarrier in take_preference() is the
    // other half of this fence.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // acquire: what the last one inside left; pairs with the release in try_lock_shared().
    if (preferred_.load(std::memory_order_acquire) == seat) [[likely]] {
      return &seat->inside;
    }
    seat->inside.store(false, std::memory_order_release);
    return nullptr;
  }
  [[nodiscard]] Held try_lock_shared(const char* thread);
  /// By who holds busy_. @return false: a thread that was preferred is still inside.
  [[nodiscard]] bool take_preference();
  [[nodiscard]] Seat* seat_of(const char* thread);

  std::atomic<Seat*> preferred_{nullptr};
  std::array<Seat, 8> seats_;  // threads beyond them take the lock as any other
  std::atomic<bool> busy_{false};
  // Of who holds busy_.
  const Seat* leaving_ = nullptr;  // not preferred any more, but maybe still inside
  const char* last_ = nullptr;
  uint32_t times_ = 0;  // that `last_` came in a row
};

/// Holds a lock for a scope.
class CardHold {
 public:
  explicit CardHold(CardLock& lock) : held_(lock.lock()) {}
  ~CardHold() { CardLock::unlock(held_); }
  CardHold(const CardHold&) = delete;
  CardHold& operator=(const CardHold&) = delete;

 private:
  CardLock::Held held_;
};

}  // namespace rio::model
