/// @file
/// Counts that one thread raises and any thread may read.
#pragma once

#include <cstdint>

#include "base/tsan.hpp"

namespace rio::pmd {

/// Raise a value that lies in memory. One instruction, where gcc takes more for a value that it has
/// seen before.
inline void add_in_memory(uint64_t& value, uint64_t more) {
#if defined(__x86_64__)
  asm("addq %1, %0" : "+m"(value) : "er"(more) : "cc");
#else
  value += more;
#endif
}

/// Raised by one thread at a time. Readers see a value that is a moment old, never a torn one, and
/// the writer needs no locked instruction.
class Counter {
 public:
  void add(uint64_t more) {
#if defined(__x86_64__)
    if constexpr (!base::kThreadSanitizer) {
      // Not an atomic load and an atomic store, of which gcc does not make one instruction.
      add_in_memory(value_, more);
      return;
    }
#endif
    set(value_ + more);
  }
  void set(uint64_t value) {
    __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
  }
  [[nodiscard]] uint64_t get() const {
    return __atomic_load_n(&value_, __ATOMIC_RELAXED);
  }

 private:
  uint64_t value_ = 0;
};

}  // namespace rio::pmd
