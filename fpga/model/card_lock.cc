#include "fpga/model/card_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace rio::model {
namespace {

constexpr std::chrono::milliseconds kStoresAreSeen{1};  // store buffers drain within nanoseconds

int64_t membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0);
}

/// Whether membarrier works; without it no lock prefers a thread. Slow the first time.
bool can_lean() {
  static const bool kRegistered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  return kRegistered;
}

}  // namespace

CardLock::CardLock() {
  static_cast<void>(can_lean());
}

CardLock::Held CardLock::lock() {
  // acquire: pairs with the release in unlock().
  while (busy_.exchange(true, std::memory_order_acquire)) {
    std::this_thread::yield();
  }
  while (!take_preference()) {
    std::this_thread::yield();
  }
  last_ = nullptr;
  return &busy_;
}

CardLock::Held CardLock::try_lock_shared(const char* thread) {
  // acquire: pairs with the release in unlock().
  if (busy_.exchange(true, std::memory_order_acquire)) {
    return nullptr;
  }
  if (!take_preference()) {
    unlock(&busy_);
    return nullptr;
  }
  times_ = last_ == thread ? times_ + 1 : 0;
  last_ = thread;
  if (times_ < kTimesToLean || !can_lean()) [[likely]] {
    return &busy_;
  }
  last_ = nullptr;
  Seat* seat = seat_of(thread);
  if (seat == nullptr) {
    return &busy_;
  }
  seat->inside.store(true, std::memory_order_relaxed);
  // release: the seat, and what other threads did inside before; pairs with the acquires in
  // try_lock().
  preferred_.store(seat, std::memory_order_release);
  unlock(&busy_);
  return &seat->inside;
}

bool CardLock::take_preference() {
  const Seat* seat = preferred_.load(std::memory_order_relaxed);
  if (seat != nullptr) {
    preferred_.store(nullptr, std::memory_order_relaxed);
    // After this, either the thread sees that it is not preferred, or we see that it is inside.
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {  // it worked before: now forbidden
      std::this_thread::sleep_for(kStoresAreSeen);
    }
    leaving_ = seat;
  }
  // acquire: what it did inside; pairs with the release in unlock().
  if (leaving_ != nullptr && leaving_->inside.load(std::memory_order_acquire)) {
    return false;
  }
  leaving_ = nullptr;
  return true;
}

CardLock::Seat* CardLock::seat_of(const char* thread) {
  for (Seat& seat : seats_) {
    if (seat.thread == nullptr) {
      seat.thread = thread;
    }
    if (seat.thread == thread) {
      return &seat;
    }
  }
  return nullptr;
}

}  // namespace rio::model
