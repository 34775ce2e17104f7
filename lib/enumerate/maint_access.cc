#include "lib/enumerate/maint_access.hpp"

#include <algorithm>
#include <cerrno>

namespace rio::enumerate {

bool is_of_device(int rc) {
  return rc == -ETIMEDOUT || rc == -EIO || rc == -EAGAIN || rc == -EPROTO || rc == -ENOSPC;
}

PatientAccess::PatientAccess(MaintAccess& access, const Limits& limits)
    : access_(access),
      tries_(std::max(1u, limits.tries)),
      allowed_(limits.accesses),
      end_(std::chrono::steady_clock::now() + limits.time),
      stop_(limits.stop) {}

bool PatientAccess::exhausted() const {
  return (stop_ != nullptr && *stop_ != 0) || done_ >= allowed_ ||
         std::chrono::steady_clock::now() >= end_;
}

void PatientAccess::extend(uint32_t accesses, std::chrono::seconds time) {
  stop_ = nullptr;
  allowed_ = std::max(allowed_, done_ + accesses);
  end_ = std::max(end_, std::chrono::steady_clock::now() + time);
}

template <class Try>
int PatientAccess::repeat(uint32_t tries, Try&& once) {
  int rc = -ETIME;
  for (uint32_t i = 0; i < tries && !exhausted(); ++i) {
    ++done_;
    rc = once();
    if (rc != -ETIMEDOUT && rc != -EAGAIN) {
      return rc;
    }
  }
  return rc;
}

int PatientAccess::read(const Address& at, uint32_t offset, uint32_t* value) {
  return repeat(at.is_own_card ? 1 : tries_, [&] { return access_.read(at, offset, value); });
}

int PatientAccess::write(const Address& at, uint32_t offset, uint32_t value) {
  return repeat(at.is_own_card ? 1 : tries_, [&] { return access_.write(at, offset, value); });
}

int PatientAccess::write_once(const Address& at, uint32_t offset, uint32_t value) {
  return repeat(1, [&] { return access_.write(at, offset, value); });
}

}  // namespace rio::enumerate
