#include "fpga/cardsim/event_irqs.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <cerrno>

#include "base/no_cancel.hpp"
#include "base/wake_fd.hpp"

namespace rio::cardsim {

int EventIrqs::open(uint32_t vectors) {
  fds_.clear();
  for (uint32_t i = 0; i < vectors; ++i) {
    fds_.push_back(base::make_wake_fd());
    if (!fds_.back().valid()) {
      return -errno;
    }
  }
  raised_.resize(vectors);
  return 0;
}

void EventIrqs::raise(uint32_t vector) {
  if (vector >= fds_.size()) {
    return;
  }
  ++raised_[vector];
  const base::NoCancel no_cancel;
  const uint64_t one = 1;
  pollfd fd{fds_[vector].get(), POLLOUT, 0};
  if (poll(&fd, 1, 0) == 1) {  // otherwise the eventfd is full, and readable anyway
    static_cast<void>(!write(fd.fd, &one, sizeof one));
  }
}

void EventIrqs::take() {
  const base::NoCancel no_cancel;
  for (size_t vector = 0; vector < fds_.size(); ++vector) {
    uint64_t times = 0;
    const iovec part{&times, sizeof times};
    constexpr off_t kNoOffset = -1;
    const ssize_t got = preadv2(fds_[vector].get(), &part, 1, kNoOffset, RWF_NOWAIT);
    raised_[vector] += got == sizeof times ? times : 0;
  }
}

std::vector<int> EventIrqs::fds() const {
  std::vector<int> all;
  for (const base::Fd& fd : fds_) {
    all.push_back(fd.get());
  }
  return all;
}

}  // namespace rio::cardsim
