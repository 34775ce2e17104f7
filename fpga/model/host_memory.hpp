/// @file
/// The card's view of host memory: only mapped ranges are accessible, as behind an IOMMU.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace rio::model {

/// A range of bus addresses, and its address in this process.
struct HostWindow {
  uint64_t iova = 0;
  uint64_t len_bytes = 0;  ///< 0: no window
  uint8_t* va = nullptr;
  bool readable = true;
  bool writable = true;

  /// Whether [addr, addr + len) is inside. Safe for any values.
  [[nodiscard]] bool holds(uint64_t addr, uint64_t len) const {
    return len <= len_bytes && addr - iova <= len_bytes - len;
  }
  [[nodiscard]] uint8_t* at(uint64_t addr) const { return va + (addr - iova); }
};

/// Implemented by the owner of the memory: this process, another one, or a QEMU guest. find() may
/// be called by the thread that steps the card while other threads map memory.
class HostMemory {
 public:
  virtual ~HostMemory() = default;

  /// Find the window that contains `iova`. @return false: it is not mapped.
  [[nodiscard]] virtual bool find(uint64_t iova, HostWindow* out) = 0;

  /// Find one window that contains all of [iova, iova + len_bytes), for a ring. Valid until the
  /// generation changes. @return false: not mapped, or not possible in one piece.
  [[nodiscard]] virtual bool find_whole(uint64_t iova, uint64_t /*len_bytes*/, HostWindow* out) {
    return find(iova, out);
  }

  /// Whether windows may go without changed(): then no result of find() may be kept.
  [[nodiscard]] virtual bool is_silent() const { return false; }

  /// A change of this number means that windows were removed: drop all results of find().
  [[nodiscard]] uint32_t generation() const {
    return generation_.load(std::memory_order_acquire);  // pairs with the release in changed()
  }

 protected:
  /// Call this after removing a window, before its memory is freed.
  void changed() { generation_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<uint32_t> generation_{1};
};

/// A table of mapped windows: the simplest HostMemory. Thread-safe. Functions return 0 or -errno.
class DmaTable : public HostMemory {
 public:
  /// Add a window. @return 0; -EINVAL: empty or wraps; -EEXIST: overlaps a window.
  [[nodiscard]] int add(const HostWindow& window);
  /// Remove the window that begins at `iova`. The caller keeps the card from stepping meanwhile
  /// (Card::with_lock), and may free the memory afterwards. @return 0; -ENOENT.
  [[nodiscard]] int remove(uint64_t iova);
  [[nodiscard]] bool find(uint64_t iova, HostWindow* out) override;

 private:
  std::mutex mutex_;
  std::map<uint64_t, HostWindow> windows_;
};

}  // namespace rio::model
