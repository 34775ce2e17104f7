/// @file
/// Bus addresses of this process, and the memory that is mapped at them. Internal to pmd/bus/vfio.
#pragma once

#include <linux/vfio.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace rio::pmd::vfio {

/// An address space that cards of this process share: a container of VFIO, or an IOAS of iommufd.
/// Each of its cards reaches all of its memory. An address that was given back is used again only
/// after all others, so that an access which is late is a fault of the IOMMU and hits no other
/// memory. Control path, any thread. Functions return 0 or -errno.
class DmaSpace {
 public:
  DmaSpace() = default;
  DmaSpace(const DmaSpace&) = delete;
  DmaSpace& operator=(const DmaSpace&) = delete;
  virtual ~DmaSpace() = default;

  /// Map memory. @param who the card, for messages. @param va, len_bytes whole pages. @param
  /// iova_is_va the bus address is the pointer; several cards may then map the same memory. @return
  /// as Bus::dma_map(), -ENOSPC, -ERANGE; logged.
  [[nodiscard]] int map(const char* who, void* va, size_t len_bytes, bool iova_is_va,
                        uint64_t* iova);
  /// Undo one map(). @param va, len_bytes, iova its arguments and result. @return -errno: the card
  /// may still reach the memory; logged.
  [[nodiscard]] int unmap(const char* who, void* va, size_t len_bytes, uint64_t iova);

 protected:
  /// The addresses that all cards of the space can have; once more after a card has joined it.
  void set_ranges(std::vector<vfio_iova_range> ranges);

 private:
  struct Piece {
    const void* va;
    size_t len_bytes;
    uint32_t users;  // 0: it could not be unmapped
  };

  /// Ask the kernel. @return at least 0, or -errno; -EIO: only a part was unmapped.
  [[nodiscard]] virtual int map_at(uint64_t iova, void* va, size_t len_bytes) = 0;
  [[nodiscard]] virtual int unmap_at(uint64_t iova, size_t len_bytes) = 0;

  [[nodiscard]] bool addressable(uint64_t iova, size_t len_bytes) const;
  [[nodiscard]] bool find_gap(uint64_t from, uint64_t offset, size_t len_bytes,
                              uint64_t* iova) const;

  std::mutex mutex_;
  std::vector<vfio_iova_range> ranges_;
  std::map<uint64_t, Piece> pieces_;  // by bus address
  uint64_t next_ = 0;                 // one past the address that was given last
};

}  // namespace rio::pmd::vfio
