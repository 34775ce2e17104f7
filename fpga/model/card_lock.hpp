/// @file
/// Lets one thread at a time into a card, without a locked instruction for the thread that steps
/// it.
///
/// A locked instruction waits until all earlier stores are in the cache. The last of these go to
/// lines of another core, so each short message would take one cache miss longer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace rio::model {

/// A lock that prefers the thread that takes it repeatedly. That thread stores that it is inside,
/// then checks that it is still preferred. Another thread takes the preference away and makes all
/// stores visible (membarrier), which is slow and rare.
class CardLock {
 public:
  /// A held lock; unlock() clears it.
  using Held = std::atomic<bool>*;

  CardLock();
  CardLock(const CardLock&) = delete;
  CardLock& operator=(const CardLock&) = delete;

  /// Any thread; does not wait. @param thread identifies the thread, not null. @return null:
  /// another thread is inside.
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
  /// Hot. try_lock() for the preferred thread, inlined. @return null: call try_lock().
  [[nodiscard]] Held try_lock_preferred(const char* thread) {
    Seat* const seat = preferred_.load(std::memory_order_acquire);  // as in try_lock()
    if (seat == nullptr || seat->thread != thread || seat->inside.load(std::memory_order_relaxed))
        [[unlikely]] {
      return nullptr;
    }
    return sit_down(seat);
  }

  /// Any thread. Waits for at most one step of another thread.
  [[nodiscard]] Held lock();

  /// @param held from try_lock() or lock(), not null.
  static void unlock(Held held) {
    // release: everything done inside; pairs with the acquires in take_preference(), lock() and
    // try_lock_shared().
    held->store(false, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kTimesToLean = 1024;

  /// The seat of one thread. It lives as long as the lock, because a thread that was delayed in
  /// try_lock() may still write it long after another one is preferred.
  struct Seat {
    const char* thread = nullptr;
    std::atomic<bool> inside{false};
  };

  /// Enter. Called by the seat's thread while it is not inside. @return null: it is not preferred
  /// any more.
  [[nodiscard]] Held sit_down(Seat* seat) {
    seat->inside.store(true, std::memory_order_relaxed);
    // A compiler fence only: the processor may reorder the store and the load. The membarrier in
    // take_preference() is the other half of this fence.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // acquire: everything done inside before; pairs with the release in try_lock_shared().
    if (preferred_.load(std::memory_order_acquire) == seat) [[likely]] {
      return &seat->inside;
    }
    seat->inside.store(false, std::memory_order_release);
    return nullptr;
  }
  [[nodiscard]] Held try_lock_shared(const char* thread);
  /// Called by the holder of busy_. @return false: the thread that was preferred is still inside.
  [[nodiscard]] bool take_preference();
  [[nodiscard]] Seat* seat_of(const char* thread);

  std::atomic<Seat*> preferred_{nullptr};
  std::array<Seat, 8> seats_;  // further threads are never preferred
  std::atomic<bool> busy_{false};
  // Used by the holder of busy_.
  const Seat* leaving_ = nullptr;  // no longer preferred, but perhaps still inside
  const char* last_ = nullptr;
  uint32_t times_ = 0;  // successive entries of `last_`
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
