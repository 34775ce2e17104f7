#include "lib/msg/patience.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace rio::msg {
namespace {

/// Linux counts a yield that has let another thread run as an involuntary switch.
[[nodiscard]] uint32_t switches_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint32_t>(usage.ru_nivcsw);
}

void yield_on_linux() {
  sched_yield();
}

// CPUs are shared in real time, also by programs that run in virtual time.
constexpr Scheduler kLinux = {base::monotonic_ns, switches_of_this_thread, yield_on_linux};

}  // namespace

const Scheduler& linux_scheduler() {
  return kLinux;
}

Patience& Patience::of_this_thread() {
  thread_local Patience own;
  return own;
}

void Patience::share(uint64_t now_ns) {
  is_shared_ = true;
  lone_yields_ = 0;
  shared_until_ns_ = now_ns + kSharedNs;
}

void Patience::look(bool waits) {
  const uint64_t now_ns = scheduler_->now_ns();
  const uint64_t gap_ns = now_ns - std::exchange(looked_ns_, now_ns);
  if (is_shared_ && now_ns > shared_until_ns_) {
    is_shared_ = false;
  }
  if (waits && gap_ns >= kGapNs) {  // it may also have done other things between its polls
    const uint32_t switches = scheduler_->switches();
    if (switches != std::exchange(switches_, switches) && !is_shared_) {
      idle_since_ns_ = now_ns;
      share(now_ns);
    }
  }
}

bool Patience::poll(bool waits) {
  const uint64_t now_ns = scheduler_->now_ns();
  if (!waits) {
    idle_since_ns_ = now_ns;
  }
  return now_ns - idle_since_ns_ >= limit_ns_;
}

void Patience::yield() {
  const uint64_t begin_ns = scheduler_->now_ns();
  scheduler_->yield();
  const uint64_t end_ns = scheduler_->now_ns();
  const uint32_t switches = scheduler_->switches();
  idle_since_ns_ = end_ns;
  if (switches == std::exchange(switches_, switches)) {
    is_shared_ = ++lone_yields_ < kLoneYields;
    return;
  }
  share(end_ns);
  limit_ns_ = end_ns - begin_ns >= kLongNs ? std::min(2 * limit_ns_, kLimitMaxNs)
                                           : std::max(limit_ns_ / 2, kLimitMinNs);
}

}  // namespace rio::msg
