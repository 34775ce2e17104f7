#include "fpga/sim/event_irqs.hpp"

#include <sys/eventfd.h>

#include <cerrno>

namespace rio::sim {

int EventIrqs::open(uint32_t vectors) {
  fds_.clear();
  for (uint32_t i = 0; i < vectors; ++i) {
    fds_.emplace_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
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
  const uint64_t one = 1;
  static_cast<void>(!write(fds_[vector].get(), &one, sizeof one));  // full: it is readable anyway
}

std::vector<int> EventIrqs::fds() const {
  std::vector<int> all;
  for (const Fd& fd : fds_) {
    all.push_back(fd.get());
  }
  return all;
}

}  // namespace rio::sim
