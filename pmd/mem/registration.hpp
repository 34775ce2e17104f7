/// @file
/// User memory that the card can reach: registered by range, counted, looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "pmd/bus/bus.hpp"

namespace rio::pmd::mem {

/// A registered range, rounded to pages. Constant while it is registered; a frequent user keeps it
/// (and passes `runs` to the alignment plan) instead of looking it up.
struct Region {
  uint8_t* va = nullptr;      ///< page-aligned
  uint64_t len_bytes = 0;     ///< whole pages
  std::vector<IovaRun> runs;  ///< ascending va, joined where contiguous, covering all of the region
};

class MemoryMap;

/// Unregisters a region of MemoryMap::register_range(), and frees it.
struct Unregister {
  MemoryMap* map = nullptr;
  void operator()(const Region* region) const;
};

/// Holds a region registered; unregisters it when destroyed. The map outlives it. The card must
/// have stopped using the memory by then.
using Registration = std::unique_ptr<const Region, Unregister>;

/// All registered memory of one bus. One thread at a time (the caller serialises); a Region that is
/// held may be read by any thread meanwhile.
///
/// Ranges may overlap and be registered again; each page is mapped once, until the last range that
/// needed its mapping is gone. A bus cannot unmap a part of a mapping: pages of a range that is
/// gone, held only by a neighbour's mapping, cannot be registered again before the neighbour goes
/// (-EBUSY), since they may be other memory by then.
class MemoryMap {
 public:
  /// @param bus outlives the map.
  explicit MemoryMap(Bus& bus);
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;
  /// All registrations must be gone.
  ~MemoryMap();

  /// Make [va, va + len_bytes) reachable. The memory stays the caller's, which keeps it mapped
  /// until the registration is gone. On a bus that maps pages (Bus::maps_addresses()) children
  /// forked meanwhile do not have its whole pages. @param va any, not null. @param len_bytes at
  /// least 1. @return 0; -EINVAL (null, empty, wraps); -EBUSY (see above); else as Bus::dma_map():
  /// -ENOTSUP (not reachable on this bus: bounce it), -ENOMEM, -EEXIST. Nothing stays mapped after
  /// an error.
  [[nodiscard]] int register_range(void* va, uint64_t len_bytes, Registration* out);

  /// Enter memory of the bus's own (Bus::dma_alloc), so that it is found like registered memory. It
  /// is never mapped or unmapped from here. Call forget() before it is freed. @return 0, -EINVAL,
  /// -EEXIST: a part of it is registered.
  [[nodiscard]] int adopt(const DmaMemory& memory);
  /// Remove adopted memory. @return 0, -ENOENT (never adopted), -EBUSY (a registration still
  /// overlaps it).
  [[nodiscard]] int forget(const DmaMemory& memory);

  /// Bus address of a range, if all of it is reachable and contiguous. O(log n). @return 0, -ENOENT
  /// (a part is not reachable), -EXDEV (reachable, but in several runs).
  [[nodiscard]] int lookup(const void* va, uint64_t len_bytes, uint64_t* iova) const;

  /// All runs of a range, in order; gaps are left out. O(log n + runs).
  void lookup_runs(const void* va, uint64_t len_bytes, std::vector<IovaRun>* out) const;

  /// Number of registered ranges.
  [[nodiscard]] size_t regions() const { return regions_; }

 private:
  friend struct Unregister;
  struct HeldRegion;
  /// The result of one dma_map(). Mappings never overlap.
  struct Mapping {
    uintptr_t end;
    std::vector<IovaRun> runs;
    std::vector<const Region*> users;
    bool adopted;
  };
  using Mappings = std::map<uintptr_t, Mapping>;

  [[nodiscard]] Mappings::const_iterator find(uintptr_t va) const;
  [[nodiscard]] int check_stale(uintptr_t begin, uintptr_t end) const;
  [[nodiscard]] int map_gaps(uintptr_t begin, uintptr_t end, std::vector<uintptr_t>* made);
  void drop(Mappings::iterator it);
  void unregister(const Region* region);

  Bus& bus_;
  uintptr_t page_bytes_;
  Mappings mappings_;
  size_t regions_ = 0;
};

}  // namespace rio::pmd::mem
