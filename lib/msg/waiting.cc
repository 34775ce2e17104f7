#include "lib/msg/waiting.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/no_cancel.hpp"
#include "lib/msg/clock.hpp"
#include "lib/msg/context.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBoundMs = 1000;  // a card that is gone is noticed by then
constexpr uint32_t kBusyMs = 2;      // something waits that no ring tells about
constexpr uint32_t kSilentMs = 20;   // a peer has not answered
constexpr uint32_t kLooksMax = 64;

/// Closed with its thread.
struct WakeFd {
  ~WakeFd() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
  int fd = -1;
};

/// @return a descriptor of this thread's own; -errno.
int wake_fd() {
  static thread_local WakeFd own;
  if (own.fd < 0) {
    own.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  }
  return own.fd >= 0 ? own.fd : -errno;
}

void add(uint64_t* sum, const pmd::QueueStats& stats) {
  *sum += stats.messages + stats.failed;
}

}  // namespace

void Port::enter() {
  lock_.lock();
}

void Port::leave() {
  if (!sleepers_.empty() && activity() != seen_) {
    wake_sleepers();
  }
  lock_.unlock();
}

void Port::wake_sleepers() {
  const base::NoCancel no_cancel;
  for (const int fd : sleepers_) {
    const uint64_t one = 1;
    static_cast<void>(!::write(fd, &one, sizeof(one)));
  }
  sleepers_.clear();
}

/// Grows with all that comes from the card.
uint64_t Port::activity() const {
  uint64_t sum = sessions_ended_;
  add(&sum, tx_->stats());
  add(&sum, shared_->stats());
  add(&sum, events_->stats());
  if (dma_ != nullptr) {
    add(&sum, endpoint_->dma().stats());
  }
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    add(&sum, endpoint_->queues().dedicated_totals(i).stats);
  }
  return sum;
}

/// All that progress() otherwise looks at now and then.
void Port::look_at_all() {
  reap();
  look_at_events(true);
  until_card_ = 1;
  look_at_time();
  for (uint32_t looks = 0; progress() != 0 && looks < kLooksMax;) {
    ++looks;
  }
}

void Port::arm() {
  static_cast<void>(endpoint_->irq_ack());
  static_cast<void>(endpoint_->irq_arm(irq_rings() & endpoint_->queues().rings()));
}

/// Until when something has to be done that no ring tells about.
uint32_t Port::sleep_bound_ms() const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const bool large = receiver_ != nullptr && large_busy();
  uint64_t bound_ns = (large || restarting_ || !again_.empty() || !talkers_.empty() ? kBusyMs
                       : tx_->outstanding() != 0 || !resting_.empty()               ? kSilentMs
                                                                                    : kBoundMs) *
                      kNsPerMs;
  const uint64_t now = now_ns();
  for (const uint32_t index : watched_) {
    const Link& link = *links_[index];
    const uint64_t next =
        link.clock.deadline_ns != 0 ? std::min(link.clock.deadline_ns, link.clock.again_ns) : link.clock.again_ns;
    bound_ns = std::min(bound_ns, next > now ? next - now : 0);
  }
  return static_cast<uint32_t>((bound_ns + kNsPerMs - 1) / kNsPerMs);
}

uint32_t Port::irq_rings() {
  const uint32_t dedicated = ((1u << regs::kDedicatedQueues) - 1)
                             << static_cast<uint32_t>(regs::Ring::kDedicated0);
  return pmd::ring_bit(regs::Ring::kTx) | pmd::ring_bit(regs::Ring::kShared) |
         pmd::ring_bit(regs::Ring::kEvent) | pmd::ring_bit(regs::Ring::kDma) | dedicated;
}

void wake_all(Port& port) {
  port.wake_sleepers();
}

int Sleeper::enlist() {
  const base::NoCancel no_cancel;
  bound_ms_ = port_.sleep_bound_ms();
  port_.slept_ = true;
  if (port_.config().threads == Threads::kOne) {
    return 0;
  }
  own_fd_ = own_fd_ < 0 ? wake_fd() : own_fd_;
  if (own_fd_ < 0) {
    return own_fd_;
  }
  uint64_t old = 0;
  static_cast<void>(!::read(own_fd_, &old, sizeof(old)));
  std::erase(port_.sleepers_, own_fd_);
  const uint64_t now = port_.activity();
  if (now != port_.seen_) {
    port_.wake_sleepers();  // this call has taken something, which may be theirs
  }
  port_.sleepers_.push_back(own_fd_);
  port_.seen_ = now;
  return 0;
}

void Sleeper::sleep(uint32_t timeout_ms) {
  pollfd fds[] = {{port_.endpoint().irq_fd(), POLLIN, 0}, {own_fd_, POLLIN, 0}};
  const uint32_t ms = std::min(timeout_ms, bound_ms_);
  const int woken = ::poll(fds, own_fd_ < 0 ? 1 : 2, static_cast<int>(ms));
  slept_out_ = woken == 0 && ms >= kBoundMs;
  interrupted_ = fds[0].revents != 0;
}

void Sleeper::wake() {
  ++port_.stats_.woken;
  std::erase(port_.sleepers_, own_fd_);
  if (interrupted_) {
    // The interrupt may have been another sleeper's, which arms again then.
    static_cast<void>(port_.endpoint().irq_ack());
    port_.wake_sleepers();
  }
  if (slept_out_) {
    const uint64_t before = port_.activity();
    port_.look_at_all();
    port_.stats_.overslept += port_.activity() != before ? 1 : 0;
  }
}

}  // namespace rio::msg
