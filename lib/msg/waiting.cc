#include "lib/msg/waiting.hpp"

#include <poll.h>

#include <cerrno>

#include "base/fd.hpp"
#include "base/wake_fd.hpp"

namespace rio::msg {
namespace {

/// The eventfd of this thread, which is closed when the thread ends. @return -errno on failure.
int wake_fd() {
  static thread_local base::Fd own;
  if (!own.valid()) {
    own = base::make_wake_fd();
  }
  return own.valid() ? own.get() : -errno;
}

}  // namespace

int Sleeper::enlist() {
  const base::NoCancel no_cancel;
  bound_ms_ = port_.sleep_bound_ms();
  port_.sleepers().has_slept = true;
  if (port_.config().threads == Threads::kOne) {
    return 0;
  }
  own_fd_ = own_fd_ < 0 ? wake_fd() : own_fd_;
  if (own_fd_ < 0) {
    return own_fd_;
  }
  port_.sleepers().enlist(own_fd_, port_.activity());
  return 0;
}

void Sleeper::sleep(uint32_t timeout_ms) {
  pollfd fds[] = {{port_.irq_fd(), POLLIN, 0}, {own_fd_, POLLIN, 0}};
  const uint32_t ms = std::min(timeout_ms, bound_ms_);
  const int woken = ::poll(fds, own_fd_ < 0 ? 1 : 2, static_cast<int>(ms));
  slept_out_ = woken == 0 && ms >= MessagePort::kSleepBoundMs;
  interrupted_ = fds[0].revents != 0;
}

void Sleeper::wake() {
  Sleepers& sleepers = port_.sleepers();
  sleepers.strike(own_fd_);
  if (interrupted_) {
    // The interrupt may have been for another sleeper, which then arms again.
    port_.irq_ack();
    sleepers.wake();
  }
  ++sleepers.woken;
  if (slept_out_) {
    const uint64_t before = port_.activity();
    port_.check_all();
    sleepers.overslept += port_.activity() != before ? 1 : 0;
  }
}

}  // namespace rio::msg
