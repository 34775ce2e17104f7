/// @file
/// Guards for ports that are used by several threads, and waits that sleep until something arrives.
///
/// No wake-up is lost before a sleep: a thread arms the rings, checks them once more, and keeps the
/// lock until it is listed as a sleeper. A thread that takes something from the rings wakes all
/// sleepers. So does one that an interrupt woke, because it consumed the interrupt. A thread that
/// another thread woke wakes none, or they would wake each other forever.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/no_cancel.hpp"
#include "lib/msg/message_port.hpp"

namespace rio::msg {

/// Holds the lock of a port that was opened for several threads; does nothing for one thread. Make
/// every call on the port, its contexts and their objects while a Guard exists. Do not hold it
/// while waiting.
class Guard {
 public:
  explicit Guard(MessagePort& port) : port_(port) {
    if (port.config().threads != Threads::kOne) [[unlikely]] {
      port.enter();
    }
  }
  ~Guard() {
    if (port_.config().threads != Threads::kOne) [[unlikely]] {
      port_.leave();
    }
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  MessagePort& port_;
};

/// The sleep of one thread, in steps. Only for a port that was opened with `sleeps`.
class Sleeper {
 public:
  /// @param port outlives this.
  explicit Sleeper(MessagePort& port) : port_(port) {}
  /// Sleep on an eventfd of the caller's instead of the thread's own one. @param fd other threads
  /// write to it to wake this one.
  void use(int fd) { own_fd_ = fd; }

  /// Ask for interrupts and check once more. Call under a Guard. @param work the caller's progress
  /// function.
  /// @return true: nothing has arrived; sleep() is next. false: something has arrived; handle it.
  template <class Work>
  [[nodiscard]] bool prepare(Work&& work) {
    port_.check_all();
    work();
    port_.arm();
    const uint64_t before = port_.activity();
    port_.check_all();
    work();
    return port_.activity() == before && port_.error() == 0;
  }
  /// List this thread as a sleeper: from now on, a thread that takes something wakes it. Call after
  /// prepare(), under the same Guard.
  /// @return 0, -errno.
  [[nodiscard]] int enlist();
  /// The longest sleep allowed; valid after enlist().
  [[nodiscard]] uint32_t bound_ms() const { return bound_ms_; }
  /// Sleep. Call without a Guard. @param timeout_ms upper bound; the sleep also ends when the port
  /// has work to do.
  void sleep(uint32_t timeout_ms);
  /// End the sleep and leave the list. Call under a Guard.
  void wake();

 private:
  MessagePort& port_;
  uint32_t bound_ms_ = 0;
  int own_fd_ = -1;
  bool slept_out_ = false;
  bool interrupted_ =
      true;  // true until known, because other threads may have slept on the descriptor
};

/// Ends a sleep by RAII, so that the thread leaves the list of sleepers even if it is cancelled.
class Asleep {
 public:
  Asleep(MessagePort& port, Sleeper& sleeper) : port_(port), sleeper_(sleeper) {}
  ~Asleep() {
    const base::NoCancel no_cancel;
    const Guard guard(port_);
    sleeper_.wake();
  }
  Asleep(const Asleep&) = delete;
  Asleep& operator=(const Asleep&) = delete;

 private:
  MessagePort& port_;
  Sleeper& sleeper_;
};

/// Wait until `ready()`: by sleeping if the port was opened for that, else by polling. It is a
/// cancellation point while it holds no lock, so no caller up the stack may be noexcept.
/// @param work the caller's progress function; like `ready`, called under a Guard. @return 1:
/// ready; 0: not ready within timeout_ms; -ENODEV: the card is gone; -errno of eventfd().
template <class Work, class Ready>
[[nodiscard]] int wait(MessagePort& port, uint32_t timeout_ms, Work&& work, Ready&& ready) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  Sleeper sleeper(port);
  for (;;) {
    bool asleep = false;
    pthread_testcancel();
    {
      const base::NoCancel no_cancel;
      const Guard guard(port);
      work();
      if (ready()) {
        return 1;
      }
      if (port.config().sleeps) {
        asleep = sleeper.prepare(work);
        if (ready()) {
          return 1;
        }
      }
      if (port.error() != 0) {
        return port.error();
      }
      if (const int rc = asleep ? sleeper.enlist() : 0; rc != 0) {
        return rc;
      }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (asleep) {
      const Asleep ends_anyhow(port, sleeper);
      sleeper.sleep(static_cast<uint32_t>(std::clamp<int64_t>(left, 0, INT32_MAX)));
    }
    if (left <= 0) {
      const base::NoCancel no_cancel;
      const Guard guard(port);
      work();
      return ready() ? 1 : port.error();
    }
  }
}

}  // namespace rio::msg
