/// @file
/// The card's view of host memory: what the host has mapped, as an IOMMU would check it.
#pragma once

#include <atomic>
#include <cstdint>

namespace rio::model {

/// A range of bus addresses and where it is in this process.
struct HostWindow {
  uint64_t iova = 0;
  uint64_t len_bytes = 0;  ///< 0: no window
  uint8_t* va = nullptr;
  bool readable = true;
  bool writable = true;

  /// Whether [addr, addr + len) lies inside. Safe for any addr and len.
  [[nodiscard]] bool holds(uint64_t addr, uint64_t len) const {
    return len <= len_bytes && addr - iova <= len_bytes - len;
  }
  [[nodiscard]] uint8_t* at(uint64_t addr) const { return va + (addr - iova); }
};

/// Implemented by the owner of the memory: this process, another one, a QEMU guest.
/// find() may be called from the thread that steps the card while others map memory.
class HostMemory {
 public:
  virtual ~HostMemory() = default;

  /// The window that holds `iova`. @return false: it is not mapped.
  [[nodiscard]] virtual bool find(uint64_t iova, HostWindow* out) = 0;

  /// As find(), for a ring, which is used as one piece: a window that holds all of [iova, iova +
  /// len) if the memory can be shown so. Valid until the generation changes.
  [[nodiscard]] virtual bool find_whole(uint64_t iova, uint64_t len_bytes, HostWindow* out) {
    static_cast<void>(len_bytes);
    return find(iova, out);
  }
  /// The card was refused an access; called once for each, with the first address that is not
  /// mapped, or not for that.
  virtual void refused(uint64_t iova) { static_cast<void>(iova); }

  /// Another value means that a window may have gone: forget what find() gave.
  [[nodiscard]] uint32_t generation() const {
    return generation_.load(std::memory_order_acquire);  // pairs with the release in changed()
  }

 protected:
  /// To be called after a window was removed and before its memory is given up.
  void changed() { generation_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<uint32_t> generation_{1};
};

}  // namespace rio::model
