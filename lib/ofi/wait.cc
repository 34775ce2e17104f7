#include "lib/ofi/wait.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <cerrno>

#include "base/wake_fd.hpp"

namespace rio::ofi {
namespace {

constexpr uint32_t kLookMs = 1;  // period of checks on a card without interrupts

[[nodiscard]] int add_to(const base::Fd& set, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

}  // namespace

Wait::~Wait() {
  if (armed_) {
    const msg::Guard guard(domain_.port());
    sleeper_.wake();
  }
}

int Wait::open(fi_wait_obj kind) {
  if (kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_YIELD) {
    return 0;
  }
  if (kind != FI_WAIT_FD) {
    return -FI_ENOSYS;
  }
  event_ = base::make_wake_fd();
  timer_ = base::Fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  set_ = base::Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!event_.valid() || !timer_.valid() || !set_.valid()) {
    return -errno;
  }
  sleeper_.use(event_.get());
  int rc = add_to(set_, event_.get());
  rc = rc == 0 ? add_to(set_, timer_.get()) : rc;
  return rc == 0 && domain_.port().config().sleeps ? add_to(set_, domain_.port().irq_fd()) : rc;
}

int Wait::control(int command, void* out) const {
  if (command != FI_GETWAIT || out == nullptr) {
    return -FI_EINVAL;
  }
  if (!set_.valid()) {
    return -FI_ENOSYS;
  }
  *static_cast<int*>(out) = set_.get();
  return 0;
}

void Wait::wake() {
  if (armed_) {
    base::wake(event_.get());
  }
  domain_.port().sleepers().wake();
}

void Wait::add_waiting(int threads) {
  const msg::Guard guard(domain_.port());
  waiting_ += static_cast<uint32_t>(threads);
}

/// Consumes the pending events of the descriptor.
void Wait::finish_waiters() {
  if (armed_) {
    armed_ = false;
    --waiting_;
    sleeper_.wake();
  }
  base::clear_wake_fd(event_.get());
  base::clear_wake_fd(timer_.get());  // it is read like an eventfd
}

int Wait::start() {
  if (domain_.port().config().sleeps) {
    if (const int rc = sleeper_.enlist(); rc != 0) {
      return rc;
    }
  }
  const uint32_t ms = domain_.port().config().sleeps ? sleeper_.bound_ms() : kLookMs;
  itimerspec when{};
  when.it_value.tv_sec = ms / 1000;
  when.it_value.tv_nsec = ms == 0 ? 1 : int64_t{ms % 1000} * 1'000'000;
  if (timerfd_settime(timer_.get(), 0, &when, nullptr) != 0) {
    return -errno;
  }
  armed_ = true;
  ++waiting_;
  return 0;
}

}  // namespace rio::ofi
