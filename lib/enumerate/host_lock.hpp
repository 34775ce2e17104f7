/// @file
/// The host base device ID lock: one host at a time changes a device. RIO Part 3 §3.5.2
#pragma once

#include <set>

#include "lib/enumerate/maint_access.hpp"

namespace rio::enumerate {

/// One thread.
class HostLock {
 public:
  /// @param access outlives the object. @param host the ID that stands for us, below 0xFFFF.
  /// @param steal take the lock from another host.
  HostLock(PatientAccess& access, uint32_t host, bool steal)
      : access_(access), host_(host), steal_(steal) {}

  /// @param holder who holds it afterwards. @param was_ours it was ours before: the device has been
  /// seen, or an earlier run has left it locked. Both are set on success and on -EBUSY.
  /// @return 0, -EBUSY (another host holds it), -EPROTO (no host can lock it), or as
  /// PatientAccess.
  [[nodiscard]] int acquire(const Address& at, uint32_t* holder, bool* was_ours);
  /// @return 0 also if it was not ours; -EPROTO: it stays locked; or as PatientAccess.
  [[nodiscard]] int release(const Address& at);
  /// Other hosts whose locks acquire() has seen, broken ones too. The ID of each is its destID.
  [[nodiscard]] const std::set<uint32_t>& others() const { return others_; }

 private:
  [[nodiscard]] int read(const Address& at, uint32_t* holder);
  [[nodiscard]] int toggle(const Address& at, uint32_t value);

  PatientAccess& access_;
  uint32_t host_;
  bool steal_;
  std::set<uint32_t> others_;
};

}  // namespace rio::enumerate
