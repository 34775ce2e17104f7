#include "lib/enumerate/host_lock.hpp"

#include <cerrno>

#include "lib/enumerate/csr.hpp"

namespace rio::enumerate {
namespace {

constexpr uint32_t kAttempts = 4;

}  // namespace

int HostLock::read(const Address& at, uint32_t* holder) {
  const int rc = access_.read(at, Csr::kHostLock, holder);
  *holder &= kUnlocked;
  return rc;
}

// One value both locks and unlocks, so it must not be written again before the register was read: a
// lost answer does not mean that the write was lost.
int HostLock::toggle(const Address& at, uint32_t value) {
  const int rc = access_.write_once(at, Csr::kHostLock, value);
  return rc == -ETIMEDOUT || rc == -EAGAIN ? 0 : rc;
}

int HostLock::acquire(const Address& at, uint32_t* holder, bool* was_ours) {
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    uint32_t now = kUnlocked;
    if (const int rc = read(at, &now); rc != 0) {
      return rc;
    }
    if (now == host_) {
      *was_ours = attempt == 0;
      *holder = now;
      return 0;
    }
    if (now != kUnlocked) {
      others_.insert(now);
    }
    if (now != kUnlocked && !steal_) {
      *holder = now;
      *was_ours = false;
      return -EBUSY;
    }
    // Another host's value opens its lock.
    if (const int rc = toggle(at, now == kUnlocked ? host_ : now); rc != 0) {
      return rc;
    }
  }
  return -EPROTO;
}

int HostLock::release(const Address& at) {
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    uint32_t now = kUnlocked;
    if (const int rc = read(at, &now); rc != 0) {
      return rc;
    }
    if (now != host_) {
      return 0;
    }
    if (const int rc = toggle(at, host_); rc != 0) {
      return rc;
    }
  }
  return -EPROTO;
}

}  // namespace rio::enumerate
