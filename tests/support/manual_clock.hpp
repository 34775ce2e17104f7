/// @file
/// A card's time that a test advances.
#pragma once

#include <atomic>
#include <cstdint>

#include "fpga/model/ends.hpp"

namespace rio::test {

/// Any thread.
class ManualClock final : public model::Clock {
 public:
  uint64_t now_ns() override { return now_ns_.load(std::memory_order_relaxed); }
  void advance_ns(uint64_t ns) { now_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> now_ns_{1};
};

}  // namespace rio::test
