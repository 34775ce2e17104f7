/// @file
/// The fault injector.
#pragma once

#include "fpga/model/config.hpp"
#include "fpga/model/core/rng.hpp"

namespace rio::model {

/// Draws faults from a seed. Counts them, so that a soak test can prove that each kind happened.
class Faults {
 public:
  explicit Faults(const FaultConfig& config) : config_(config), rng_(config.seed) {}

  [[nodiscard]] bool enabled() const { return config_.rate > 0.0 && config_.kinds != 0; }

  /// Whether this fault happens now.
  [[nodiscard]] bool draw(Fault fault) {
    if (!enabled() || (config_.kinds & static_cast<uint32_t>(fault)) == 0 ||
        !rng_.chance(config_.rate)) {
      return false;
    }
    ++drawn_[__builtin_ctz(static_cast<uint32_t>(fault))];
    return true;
  }
  [[nodiscard]] uint32_t below(uint32_t n) { return rng_.below(n); }
  [[nodiscard]] uint64_t drawn(Fault fault) const {
    return drawn_[__builtin_ctz(static_cast<uint32_t>(fault))];
  }

 private:
  FaultConfig config_;
  Rng rng_;
  uint64_t drawn_[32] = {};
};

}  // namespace rio::model
