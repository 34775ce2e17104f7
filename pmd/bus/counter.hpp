/// @file
/// Counts that one thread raises and any thread may read.
#pragma once

#include <cstdint>

namespace rio::pmd {

/// Raised by one thread at a time. Readers see a value that is a moment old, never a torn one, and
/// the writer needs no locked instruction.
class Counter {
 public:
  void add(uint64_t more) { set(value_ + more); }
  void set(uint64_t value) { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }
  [[nodiscard]] uint64_t get() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

 private:
  uint64_t value_ = 0;
};

}  // namespace rio::pmd
