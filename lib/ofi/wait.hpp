/// @file
/// Waiting for a completion queue or a counter.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "base/fd.hpp"
#include "lib/msg/waiting.hpp"
#include "lib/ofi/domain.hpp"

namespace rio::ofi {

/// Lets a caller sleep where the card has interrupts; other threads can wake it, too.
class Wait {
 public:
  explicit Wait(Domain& domain) : domain_(domain), sleeper_(domain.port()) {}
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  /// Set up. @param kind FI_WAIT_FD: descriptor() is available. @return 0; -FI_ENOSYS: the kind is
  /// not supported; -errno.
  [[nodiscard]] int open(fi_wait_obj kind);
  /// Like fi_control(FI_GETWAIT). @param out int: becomes readable when there may be something,
  /// after arm(). @return 0, -FI_ENOSYS: there is no descriptor; -FI_EINVAL: another command.
  [[nodiscard]] int control(int command, void* out) const;

  /// Hot. Under a Guard. Called when a completion was added: wakes a waiting caller.
  void news() {
    if (waiting_ != 0) [[unlikely]] {
      wake();
    }
  }
  /// Under a Guard. Makes all waiting callers look again.
  void wake();

  /// Without a Guard. @param ready called under one. @param timeout_ms negative: 49 days.
  /// @return 1: it is ready; 0: not within that time; -FI_ENODEV, -errno.
  template <class Ready>
  [[nodiscard]] int until(int timeout_ms, Ready&& ready) {
    for (uint32_t look = 0; look < kLooks; ++look) {
      const base::NoCancel no_cancel;
      const msg::Guard guard(domain_.port());
      domain_.progress();
      if (ready()) {
        return 1;
      }
    }
    const auto bound = timeout_ms < 0 ? UINT32_MAX : static_cast<uint32_t>(timeout_ms);
    const Waiting counted(*this);
    return msg::wait(
        domain_.port(), bound, [this] { domain_.progress(); }, ready);
  }

  /// Like fi_trywait(). @param ready called under a Guard. @return 0: the descriptor reports what
  /// comes next; -FI_EAGAIN: there is something already; -FI_EINVAL: no descriptor; -errno.
  template <class Ready>
  [[nodiscard]] int arm(Ready&& ready) {
    const msg::Guard guard(domain_.port());
    if (!set_.valid()) {
      return -FI_EINVAL;
    }
    finish_waiters();
    const auto work = [this] { domain_.progress(); };
    work();
    const bool quiet = !domain_.port().config().sleeps || sleeper_.prepare(work);
    return ready() || !quiet ? -FI_EAGAIN : start();
  }

 private:
  /// Marks a thread as waiting, until it returns or is cancelled.
  class Waiting {
   public:
    explicit Waiting(Wait& wait) : wait_(wait) { wait_.add_waiting(1); }
    ~Waiting() { wait_.add_waiting(-1); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Wait& wait_;
  };

  static constexpr uint32_t kLooks = 1000;  // checks before it sleeps: some 100 us

  void add_waiting(int threads);
  void finish_waiters();
  [[nodiscard]] int start();

  Domain& domain_;
  msg::Sleeper sleeper_;
  uint32_t waiting_ = 0;  // waiting threads, plus one for an armed descriptor
  bool armed_ = false;
  base::Fd event_;  // written by other threads
  base::Fd timer_;  // next deadline of the port
  base::Fd set_;    // epoll set of both, and of the card's interrupt
};

}  // namespace rio::ofi
