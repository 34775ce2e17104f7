/// @file
/// Memory for rings and buffers, cut from larger mapped pieces. Internal to pmd/bus/vfio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/huge_files.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/range_allocator.hpp"

namespace rio::pmd::vfio {

/// Pieces of hugepages, or of ordinary memory if there are none and the backend can do without.
/// Where it cannot, the hugepages lie in HugeFiles. Forked children find zeros there. A piece
/// begins on 2 MiB in both address spaces (ordinary memory below 2 MiB: 64 KiB), is contiguous in
/// bus addresses, and lives as long as the arena. One thread.
class DmaArena {
 public:
  /// @param backend, kernel outlive the arena. @param name the card's address.
  DmaArena(Backend& backend, Kernel& kernel, const PciPaths& paths, const std::string& name);
  ~DmaArena();
  DmaArena(const DmaArena&) = delete;
  DmaArena& operator=(const DmaArena&) = delete;

  /// As Bus::dma_alloc(). @param align_bytes up to 2 MiB.
  [[nodiscard]] int allocate(size_t len_bytes, size_t align_bytes, DmaMemory* out);
  void free(const DmaMemory& memory);
  /// Never give the memory back: the card may still write it. Logged.
  void leak();
  [[nodiscard]] bool overlaps(const void* va, size_t len_bytes) const;
  /// As HugeFiles::remove_leftovers().
  void remove_leftovers() { files_.remove_leftovers(); }

 private:
  /// Memory as the kernel gave it.
  struct Area {
    void* va;
    size_t len_bytes;
    std::vector<IovaRun> runs;
    std::string file;  // of HugeFiles; empty: the memory ends with the process
  };
  /// A part of an area that is contiguous in bus addresses.
  struct Piece {
    uintptr_t va;
    uint64_t iova;
    size_t len_bytes;
    RangeAllocator places;
  };

  [[nodiscard]] bool take(size_t len_bytes, size_t align_bytes, DmaMemory* out);
  [[nodiscard]] int grow(size_t len_bytes);
  [[nodiscard]] int grow_huge(size_t len_bytes);
  [[nodiscard]] int grow_ordinary(size_t len_bytes);
  [[nodiscard]] int add_area(void* va, size_t len_bytes, const std::string& file = {});
  [[nodiscard]] std::string hugepages(const char* which) const;
  void log_too_few_hugepages(size_t len_bytes);

  Backend& backend_;
  Kernel& kernel_;
  const PciPaths paths_;
  const std::string name_;
  HugeFiles files_;
  std::vector<Area> areas_;
  std::vector<Piece> pieces_;
  std::map<uintptr_t, size_t> taken_;  // bytes handed out, with their length
};

}  // namespace rio::pmd::vfio
