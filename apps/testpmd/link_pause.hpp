/// @file
/// A sender's pause while the link is down: what is sent then comes back at once.
#pragma once

#include <rte_cycles.h>

#include <cstdint>

#include "pmd/dev/types.hpp"

namespace rio::testpmd {

/// Of one sender, one thread. Costs a compare while the link is up.
class LinkPause {
 public:
  static constexpr uint64_t kPausesPerSecond = 5000;

  /// A completion that is not OK.
  void note(pmd::Status status) {
    if (status == pmd::Status::kLinkDown) {
      until_ = rte_rdtsc() + rte_get_tsc_hz() / kPausesPerSecond;
    }
  }
  [[nodiscard]] bool pausing() {
    if (until_ == 0) [[likely]] {
      return false;
    }
    until_ = rte_rdtsc() < until_ ? until_ : 0;
    return until_ != 0;
  }

 private:
  uint64_t until_ = 0;
};

}  // namespace rio::testpmd
