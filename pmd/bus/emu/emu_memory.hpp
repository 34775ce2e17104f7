/// @file
/// Where the memory of an emulated card's users comes from.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "base/shared_memory.hpp"
#include "fpga/model/host_memory.hpp"
#include "pmd/bus/bus.hpp"

namespace rio::pmd {

/// The memory as an emulated card sees it. Named here, so that other memory than own_memory() can
/// be made without knowing the model.
using EmuView = model::HostMemory;
using EmuWindow = model::HostWindow;

/// Memory that an emulated card may reach. The process's own (own_memory()), or EAL's (bus/eal).
/// Control path. Functions return 0 or -errno.
class EmuMemory {
 public:
  virtual ~EmuMemory() = default;
  [[nodiscard]] virtual int alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) = 0;
  /// alloc() of memory that the card's partners may map, if the system allows it.
  [[nodiscard]] virtual int alloc_readable(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
    return alloc(len_bytes, align_bytes, out);
  }
  /// The memory that partners may map; null: none, ever.
  [[nodiscard]] virtual std::shared_ptr<base::ReadableAreas> readable_areas() { return nullptr; }
  /// Free memory of either.
  virtual void free(const DmaMemory& memory) = 0;
  [[nodiscard]] virtual int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) = 0;
  [[nodiscard]] virtual int unmap(void* va, size_t len_bytes) = 0;
  /// map() with a bus address of the caller's choice. @return -ENOTSUP where we choose.
  [[nodiscard]] virtual int map_at(void* /*va*/, uint64_t /*iova*/, size_t /*len_bytes*/) {
    return -ENOTSUP;
  }
  /// As Bus::shared_alloc() and shared_free().
  [[nodiscard]] virtual void* shared_alloc(size_t len_bytes, size_t align_bytes) {
    return own_alloc(len_bytes, align_bytes);
  }
  virtual void shared_free(void* memory) { std::free(memory); }
  /// From now on free(), shared_free() and the destructor leave in place what other processes see,
  /// if any do.
  virtual void leave_to_others() {}
  /// The card's view. Valid as long as this object.
  [[nodiscard]] virtual EmuView& view() = 0;
};

/// Memory of this process. Bus addresses are not pointers, so that mixing them up fails.
[[nodiscard]] std::unique_ptr<EmuMemory> own_memory();

}  // namespace rio::pmd
