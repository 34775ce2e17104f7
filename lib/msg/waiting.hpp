/// @file
/// Ports that several threads use, and threads that sleep until something comes.
///
/// A wake-up must not be lost between "there is nothing" and sleep. It is not: rings are armed,
/// then looked at once more; the lock is held until the thread is listed as a sleeper; a thread
/// that takes something from the rings wakes all; and so does one that an interrupt has woken,
/// since it takes the interrupt away from the rest. One that another thread has woken wakes none:
/// the rest were woken with it, and would wake it again, for ever.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/no_cancel.hpp"
#include "lib/msg/message_port.hpp"

namespace rio::msg {

/// All calls of a port, of its contexts, and of what is made on them, are made while one exists, if
/// the port was opened for several threads; for one thread it does nothing. Not held while waiting.
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

/// Under a Guard: ends the sleep of all threads, which look again.
void wake_all(MessagePort& port);

/// The sleep of one thread, in steps. Of a port that was opened with `sleeps`.
class Sleeper {
 public:
  /// @param wake_fd eventfd that other threads write to; -1: one of the thread that calls.
  explicit Sleeper(MessagePort& port) : port_(port) {}
  /// @param fd eventfd that other threads write to, instead of one of the thread that calls.
  void use(int fd) { own_fd_ = fd; }

  /// Under a Guard. Ask for interrupts and look once more. `work` is progress() of the caller that
  /// waits.
  /// @return true: nothing has come; sleep() is next. false: something has; look at it.
  template <class Work>
  [[nodiscard]] bool prepare(Work&& work) {
    port_.look_at_all();
    work();
    port_.arm();
    const uint64_t before = port_.activity();
    port_.look_at_all();
    work();
    return port_.activity() == before && port_.error() == 0;
  }
  /// Under the same Guard, after prepare(): a thread that takes something from now on wakes this
  /// one.
  /// @return 0, -errno.
  [[nodiscard]] int enlist();
  /// After enlist(): how long a sleep may be.
  [[nodiscard]] uint32_t bound_ms() const { return bound_ms_; }
  /// Without a Guard. @param timeout_ms at most so long, and not past what the port has to do.
  void sleep(uint32_t timeout_ms);
  /// Under a Guard: the end of it.
  void wake();

 private:
  MessagePort& port_;
  uint32_t bound_ms_ = 0;
  int own_fd_ = -1;
  bool slept_out_ = false;
  bool interrupted_ = true;  // assumed until known: others may have slept on the descriptor
};

/// Takes a listed thread off the list of sleepers, even if it is cancelled in its sleep.
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

/// Wait until `ready()`, by sleeping if the port was opened for that, else by polling. A thread may
/// be cancelled in it, between two looks, when it holds nothing: no function above it is noexcept.
/// @param work progress() of the caller that waits. Both are called under a Guard. @return 1: it is
/// ready; 0: not within timeout_ms; -ENODEV: the card is gone; -errno of eventfd().
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
