/// @file
/// The card's time.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace rio::model {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds, never backwards.
  [[nodiscard]] virtual uint64_t now_ns() = 0;
};

/// The time of this machine.
class HostClock final : public Clock {
 public:
  uint64_t now_ns() override { return base::now_ns(); }
};

/// A time that a test advances.
class ManualClock final : public Clock {
 public:
  uint64_t now_ns() override { return now_ns_.load(std::memory_order_relaxed); }
  void advance_ns(uint64_t ns) { now_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> now_ns_{1};
};

}  // namespace rio::model
