#include "lib/ofi/wait.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/no_cancel.hpp"

namespace rio::ofi {
namespace {

constexpr uint32_t kLookMs = 1;  // where a card has no interrupts

[[nodiscard]] int add_to(int set, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void drain(int fd) {
  const base::NoCancel no_cancel;
  uint64_t count = 0;
  static_cast<void>(!::read(fd, &count, sizeof(count)));
}

}  // namespace

Wait::~Wait() {
  if (armed_) {
    const msg::Guard guard(domain_.port());
    sleeper_.wake();
  }
  for (const int fd : {set_, timer_, event_}) {
    if (fd >= 0) {
      ::close(fd);
    }
  }
}

int Wait::open(fi_wait_obj kind) {
  if (kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_YIELD) {
    return 0;
  }
  if (kind != FI_WAIT_FD) {
    return -FI_ENOSYS;
  }
  event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  set_ = epoll_create1(EPOLL_CLOEXEC);
  if (event_ < 0 || timer_ < 0 || set_ < 0) {
    return -errno;
  }
  sleeper_.use(event_);
  int rc = add_to(set_, event_);
  rc = rc == 0 ? add_to(set_, timer_) : rc;
  return rc == 0 && domain_.port().config().sleeps
             ? add_to(set_, domain_.port().endpoint().irq_fd())
             : rc;
}

int Wait::control(int command, void* out) const {
  if (command != FI_GETWAIT || out == nullptr) {
    return -FI_EINVAL;
  }
  if (set_ < 0) {
    return -FI_ENOSYS;
  }
  *static_cast<int*>(out) = set_;
  return 0;
}

void Wait::wake() {
  if (armed_) {
    const base::NoCancel no_cancel;
    const uint64_t one = 1;
    static_cast<void>(!::write(event_, &one, sizeof(one)));
  }
  msg::wake_all(domain_.port());
}

void Wait::add_waiting(int threads) {
  const msg::Guard guard(domain_.port());
  waiting_ += static_cast<uint32_t>(threads);
}

/// Consume the descriptor's news.
void Wait::settle() {
  if (armed_) {
    armed_ = false;
    --waiting_;
    sleeper_.wake();
  }
  drain(event_);
  drain(timer_);
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
  if (timerfd_settime(timer_, 0, &when, nullptr) != 0) {
    return -errno;
  }
  armed_ = true;
  ++waiting_;
  return 0;
}

}  // namespace rio::ofi
