/// @file
/// fi_cntr_open(): counts of completed operations.
#pragma once

#include <cstdint>

#include "lib/ofi/domain.hpp"
#include "lib/ofi/fid.hpp"
#include "lib/ofi/wait.hpp"

namespace rio::ofi {

class FiCounter : public fid_cntr, public Used {
 public:
  using Fid = fid_cntr;

  FiCounter(Domain& domain, void* user_context);

  /// Hot. Under a Guard.
  void add(uint64_t count) { set(value_ + count); }
  void add_error(uint64_t count) {
    errors_ += count;
    wait_.news();
  }
  void set(uint64_t value) {
    value_ = value;
    wait_.news();
  }
  /// Set by the user, which needs no news of it: only threads that wait now are woken.
  void set_error(uint64_t value) {
    errors_ = told_errors_ = value;
    wait_.news();
  }
  void add_told_error(uint64_t count) { set_error(errors_ + count); }

  /// Make progress, then read. Like fi_cntr_read() and fi_cntr_readerr().
  [[nodiscard]] uint64_t read();
  [[nodiscard]] uint64_t read_error();
  /// As fi_cntr_wait(). @param timeout_ms negative: for ever. @return 0, -FI_ETIMEDOUT; -FI_EAVAIL:
  /// an operation has failed and the user was not told, even before the call, since waiting for it
  /// would be in vain; -FI_ENODEV.
  [[nodiscard]] int wait(uint64_t threshold, int timeout_ms);

  /// Completed operations and failed ones.
  struct Values {
    uint64_t done = 0;
    uint64_t failed = 0;
    bool operator==(const Values&) const = default;
  };
  /// Under a Guard. The present values, without making progress.
  [[nodiscard]] Values values() const { return {value_, errors_}; }
  [[nodiscard]] Domain& domain() { return domain_; }
  [[nodiscard]] Wait& waiter() { return wait_; }
  /// As Wait::control().
  [[nodiscard]] int control(int command, void* out) { return wait_.control(command, out); }
  /// Like fi_trywait(): whether the values are still those read last.
  [[nodiscard]] int arm();

 private:
  Domain& domain_;
  Use use_{domain_};
  uint64_t value_ = 0;
  uint64_t errors_ = 0;
  uint64_t told_errors_ = 0;  // errors that the user has read, or that a wait has reported
  uint64_t read_value_ = 0;
  uint64_t read_errors_ = 0;
  Wait wait_{domain_};
};

/// Hot. Under a Guard. Count an operation that is done. @param counter null: it is not counted.
/// @param error 0: it has succeeded.
inline void count(FiCounter* counter, int error) {
  if (counter != nullptr) {
    error == 0 ? counter->add(1) : counter->add_error(1);
  }
}

int open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** out, void* user_context);

}  // namespace rio::ofi
