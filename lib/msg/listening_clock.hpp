/// @file
/// The time for which a port has listened to its peers: their silence is measured by it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace rio::msg {

/// A process that was stopped, or that has called no function of its port, could not hear its
/// peers. Their messages of that time are still to be taken, so it counts as a short time.
/// One thread at a time.
class ListeningClock {
 public:
  /// Most that counts between two calls of now_ns(). A port that waits looks more often.
  static constexpr uint64_t kMostNs = 100'000'000;

  /// To be called at each look for an answer. @return the time listened, above 0. It never
  /// decreases.
  [[nodiscard]] uint64_t now_ns() { return at(base::now_ns()); }
  /// now_ns(), at a time of base::now_ns() that may be a little old.
  [[nodiscard]] uint64_t at(uint64_t real_ns) {
    if (real_ns > last_ns_) {
      listened_ns_ += std::min(real_ns - last_ns_, kMostNs);
      last_ns_ = real_ns;
    }
    return listened_ns_;
  }

 private:
  uint64_t last_ns_ = base::now_ns();
  uint64_t listened_ns_ = 1;
};

}  // namespace rio::msg
