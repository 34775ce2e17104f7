/// @file
/// Accesses that are tried again when an answer was lost, and bounded in all.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>

#include "lib/enumerate/maint_access.hpp"

namespace rio::enumerate {

/// How much an enumeration may do.
struct Limits {
  uint32_t tries = 3;              ///< of one access, at least 1
  uint32_t accesses = 1'000'000;   ///< in all
  std::chrono::seconds time{120};  ///< in all
  /// Null, or not 0 once the user wants it to end; a signal handler may write it.
  const volatile std::sig_atomic_t* stop = nullptr;
};

/// Whether an error says something about a device, and not about the card itself or the run.
/// -ENOSPC: no destID is left for it.
[[nodiscard]] bool is_of_device(int rc);

/// One thread. As MaintAccess, and besides -ETIME: the limit was reached, nothing was sent. The own
/// card is asked once.
class PatientAccess {
 public:
  /// The clock starts. @param access outlives the object.
  PatientAccess(MaintAccess& access, const Limits& limits);

  [[nodiscard]] int read(const Address& at, uint32_t offset, uint32_t* value);
  /// For registers where writing the same again does no harm.
  [[nodiscard]] int write(const Address& at, uint32_t offset, uint32_t value);
  /// Write once, for registers that must not be written twice. After -ETIMEDOUT it is unknown
  /// whether it was carried out.
  [[nodiscard]] int write_once(const Address& at, uint32_t offset, uint32_t value);

  /// Allow so much more, to tidy up, even if the user wants it to end.
  void extend(uint32_t accesses, std::chrono::seconds time);

 private:
  [[nodiscard]] bool exhausted() const;
  template <class Try>
  [[nodiscard]] int repeat(uint32_t tries, Try&& once);

  MaintAccess& access_;
  uint32_t tries_;
  uint32_t allowed_;
  uint32_t done_ = 0;
  std::chrono::steady_clock::time_point end_;
  const volatile std::sig_atomic_t* stop_;
};

}  // namespace rio::enumerate
