/// @file
/// Large pieces of memory in huge pages, where the machine has them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace rio::sim {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using HugeMemory = std::unique_ptr<void, FreeMemory>;

inline constexpr size_t kHugePageBytes = 2u << 20;

/// Any thread. @param bytes at least 1. @return zeros from a multiple of kHugePageBytes on.
/// @throws std::bad_alloc
[[nodiscard]] HugeMemory reserve_huge(size_t bytes);

}  // namespace rio::sim
