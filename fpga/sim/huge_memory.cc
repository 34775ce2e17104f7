#include "fpga/sim/huge_memory.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace rio::sim {

HugeMemory reserve_huge(size_t bytes) {
  const size_t rounded = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  HugeMemory memory(std::aligned_alloc(kHugePageBytes, rounded));
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  // It only saves TLB misses: without huge pages everything works, so an error does not matter.
  (void)::madvise(memory.get(), rounded, MADV_HUGEPAGE);
  std::memset(memory.get(), 0, rounded);
  return memory;
}

}  // namespace rio::sim
