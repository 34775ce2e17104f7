/// @file
/// Mapped memory with an owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/fd.hpp"

namespace rio::base {

/// Memory of mmap(), which is unmapped with the object. One thread at a time; any thread may
/// use the memory. Functions return 0 or -errno.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() { reset(); }
  Mapping(Mapping&& other) noexcept
      : va_(std::exchange(other.va_, nullptr)), len_bytes_(std::exchange(other.len_bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(va_, other.va_);
    std::swap(len_bytes_, other.len_bytes_);
    return *this;
  }

  /// Map a part of a file, readable and writable, shared with all who map it. @param file may be
  /// closed afterwards. @param offset_bytes a multiple of the page size. @param out set only on
  /// success.
  [[nodiscard]] static int of_file(const Fd& file, uint64_t offset_bytes, size_t len_bytes,
                                   Mapping* out);
  /// Take zeroed memory that is readable and writable. @param align_bytes a power of two.
  /// @param out set only on success.
  [[nodiscard]] static int of_memory(size_t len_bytes, size_t align_bytes, Mapping* out);
  /// Take addresses without memory, where the caller maps something else with MAP_FIXED: that is
  /// unmapped with the object, too. @param align_bytes a power of two. @param out set only on
  /// success.
  [[nodiscard]] static int of_addresses(size_t len_bytes, size_t align_bytes, Mapping* out);

  /// @return null: nothing is mapped.
  [[nodiscard]] uint8_t* va() const { return va_; }
  [[nodiscard]] size_t len_bytes() const { return len_bytes_; }
  [[nodiscard]] bool valid() const { return va_ != nullptr; }
  void reset();

 private:
  Mapping(void* va, size_t len_bytes) : va_(static_cast<uint8_t*>(va)), len_bytes_(len_bytes) {}
  [[nodiscard]] static int aligned(size_t len_bytes, size_t align_bytes, int protection,
                                   Mapping* out);

  uint8_t* va_ = nullptr;
  size_t len_bytes_ = 0;
};

/// Put memory of the process's own that is all ones in the place of mapped memory: at once, so that
/// other threads read either the old memory or ones. It reads like the BAR of a card that is gone,
/// and takes writes. Any thread, and signal handlers. @param va, len_bytes whole pages. @return 0,
/// -ENOMEM (the old memory is still there).
[[nodiscard]] int put_ones_over(void* va, size_t len_bytes);

}  // namespace rio::base
