/// @file
/// The only way to a BAR, and the only home of device barriers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tsan.hpp"
#include "pmd/bus/counter.hpp"

namespace rio::pmd {

/// Orders writes to host memory that the card reads (descriptors) before a later BAR write.
/// Pairs with the card's fetch after it has seen the tail.
inline void dma_write_barrier() {
#if defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#else
  asm volatile("" ::: "memory");  // x86: stores are seen in order, write-back and uncached alike
#endif
}

/// Makes writes to a BAR that may be write-combined leave the CPU, before any later write. Costs
/// little on other mappings. Linux's vfio maps no BAR so on x86; sysfs' resource0_wc is so.
inline void write_combined_barrier() {
#if defined(__x86_64__)
  asm volatile("sfence" ::: "memory");
#else
  dma_write_barrier();
#endif
}

/// Orders the read of a completion before reads of the payload. Pairs with the card's rule that all
/// that it wrote earlier is visible before any word of a completion.
inline void dma_read_barrier() {
#if defined(__aarch64__)
  asm volatile("dmb oshld" ::: "memory");
#else
  asm volatile("" ::: "memory");  // x86: loads are done in order
#endif
}

/// Let a moment pass between two looks at a word that another writes.
inline void cpu_pause() {
#if defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#else
  asm volatile("pause" ::: "memory");
#endif
}

/// Sees every access in place of the BAR; for tests and tracing.
class MmioTap {
 public:
  virtual ~MmioTap() = default;
  /// @return the word that the reader gets.
  virtual uint32_t on_read(uint32_t offset_bytes) = 0;
  virtual void on_write(uint32_t offset_bytes, uint32_t value) = 0;
};

/// How often a BAR was accessed through one Mmio object.
struct MmioCounts {
  uint64_t reads = 0;
  uint64_t writes = 0;
};

/// A window onto a BAR of little-endian 32-bit words. Does not own the mapping. An object belongs
/// to one thread; copies count on their own.
class Mmio {
 public:
  Mmio() = default;
  /// @param base first byte of the BAR, 4-byte aligned; @param len_bytes its size.
  Mmio(volatile void* base, size_t len_bytes)
      : base_(static_cast<volatile uint8_t*>(base)), len_bytes_(len_bytes) {}
  /// All accesses go to `tap`, which outlives the object.
  Mmio(MmioTap* tap, size_t len_bytes) : tap_(tap), len_bytes_(len_bytes) {}

  /// Slow path only: about a microsecond on PCIe. @param offset_bytes multiple of 4, inside.
  [[nodiscard]] uint32_t read32(uint32_t offset_bytes) {
    reads_.add(1);
    if (tap_ != nullptr) [[unlikely]] {
      return tap_->on_read(offset_bytes);
    }
    // acquire: status words are read before what they announce; pairs with the card's write.
    const uint32_t value = __atomic_load_n(word(offset_bytes), __ATOMIC_ACQUIRE);
    dma_read_barrier();
    return value;
  }

  /// Writes after everything written before. @param offset_bytes multiple of 4, inside.
  void write32(uint32_t offset_bytes, uint32_t value) {
    writes_.add(1);
    dma_write_barrier();
    store_word(offset_bytes, value);
  }

  /// Write a value of two words, the lower half first: two accesses. @param low, high offsets.
  void write64(uint32_t low, uint32_t high, uint64_t value) {
    write32(low, static_cast<uint32_t>(value));
    write32(high, static_cast<uint32_t>(value >> 32));
  }

  /// Hot. Write 16 words after everything written before, in the widest stores that there are; the
  /// bus may split and reorder them. One access. @param offset_bytes multiple of 64, inside. @param
  /// words 32-byte aligned.
  void write_line(uint32_t offset_bytes, const uint32_t (&words)[16]) {
    writes_.add(1);
    dma_write_barrier();
    if (tap_ != nullptr || base::kThreadSanitizer) [[unlikely]] {
      for (uint32_t i = 0; i < 16; ++i) {
        store_word(offset_bytes + 4 * i, words[i]);
      }
      return;
    }
    using Half [[gnu::vector_size(32), gnu::may_alias]] = uint32_t;
    auto* const to = reinterpret_cast<volatile Half*>(base_ + offset_bytes);
    const auto* const from = reinterpret_cast<const Half*>(words);
    to[0] = from[0];
    to[1] = from[1];
  }

  /// Hot. write32() for a caller that keeps the word and counts its writes itself: count_writes().
  static void write_word(volatile uint32_t* word, uint32_t value) {
    dma_write_barrier();
    __atomic_store_n(word, value, __ATOMIC_RELEASE);  // release: as in write32()
  }
  /// @return null: each write has to be a write32(). @param offset_bytes multiple of 4, inside.
  [[nodiscard]] volatile uint32_t* word_to_write(uint32_t offset_bytes) const {
    return tap_ != nullptr ? nullptr : word(offset_bytes);
  }
  void count_writes(uint32_t writes) { writes_.add(writes); }

  [[nodiscard]] size_t len_bytes() const { return len_bytes_; }
  /// Any thread.
  [[nodiscard]] MmioCounts counts() const { return {reads_.get(), writes_.get()}; }

 private:
  void store_word(uint32_t offset_bytes, uint32_t value) {
    if (tap_ != nullptr) [[unlikely]] {
      tap_->on_write(offset_bytes, value);
      return;
    }
    // release: descriptors visible before the doorbell; pairs with the card's load of the word.
    __atomic_store_n(word(offset_bytes), value, __ATOMIC_RELEASE);
  }
  [[nodiscard]] volatile uint32_t* word(uint32_t offset_bytes) const {
    return reinterpret_cast<volatile uint32_t*>(base_ + offset_bytes);
  }

  volatile uint8_t* base_ = nullptr;
  MmioTap* tap_ = nullptr;
  Counter reads_;
  Counter writes_;
  size_t len_bytes_ = 0;
};

}  // namespace rio::pmd
