/// @file
/// A card's time that a test advances.
#pragma once

#include <atomic>
#include <cstdint>

#include "fpga/model/ends.hpp"

namespace rio::test {

/// The time of a card that a test steps: it passes with the steps.
class StepClock : public model::Clock {
 public:
  virtual void advance_ns(uint64_t ns) = 0;
};

/// Any thread.
class ManualClock final : public StepClock {
 public:
  uint64_t now_ns() override { return now_ns_.load(std::memory_order_relaxed); }
  void advance_ns(uint64_t ns) override { now_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> now_ns_{1};
};

}  // namespace rio::test
