/// @file
/// Completions as the driver reads them. The card writes one at once, but its words may become
/// visible in any order: a word of all ones is not there yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/tsan.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/mmio.hpp"

namespace rio::pmd {

inline constexpr uint32_t kPhaseBit = regs::tx_cpl::Status::phase.mask();
inline constexpr uint32_t kCodeMask = regs::tx_cpl::Status::code.mask();
static_assert(kPhaseBit == regs::entry_cpl::Status::phase.mask() &&
              kPhaseBit == regs::shared_cpl::Status::phase.mask() &&
              kPhaseBit == regs::doorbell_cpl::Status::phase.mask() &&
              kPhaseBit == regs::event_cpl::Status::phase.mask());
static_assert(offsetof(regs::TxCpl, status) + sizeof(uint32_t) == sizeof(regs::TxCpl) &&
              offsetof(regs::EntryCpl, status) + sizeof(uint32_t) == sizeof(regs::EntryCpl) &&
              offsetof(regs::SharedCpl, status) + sizeof(uint32_t) == sizeof(regs::SharedCpl) &&
              offsetof(regs::DoorbellCpl, status) + sizeof(uint32_t) == sizeof(regs::DoorbellCpl) &&
              offsetof(regs::EventCpl, status) + sizeof(uint32_t) == sizeof(regs::EventCpl));

static_assert(regs::shared_short_cpl::Status::phase.mask() == kPhaseBit &&
              regs::shared_short_cpl::Status::code.mask() == kCodeMask &&
              offsetof(regs::SharedShortCpl, status) + sizeof(uint32_t) ==
                  sizeof(regs::SharedShortCpl));

static_assert(regs::barrier_cpl::Status::phase.mask() == kPhaseBit &&
              regs::barrier_cpl::Status::code.mask() == kCodeMask &&
              offsetof(regs::BarrierCpl, status) + sizeof(uint32_t) == sizeof(regs::BarrierCpl));

/// The words of a completion of 16 bytes, or of half of one.
using Quad [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = uint32_t;
using Half [[gnu::may_alias]] = uint64_t;
/// A word that the card has not written. It may also have written all ones.
inline constexpr uint32_t kUnwritten = ~0u;
/// Looks at a completion that is not whole, before the driver takes it for what it is.
inline constexpr uint32_t kTornLooks = 64;
/// The last words of a completion that is not there. @param flip of the lap before.
[[nodiscard]] constexpr Quad unwritten_quad(uint32_t flip) {
  return Quad{kUnwritten, kUnwritten, kUnwritten, ~kPhaseBit | flip};
}

/// Whether the last word of a completion is there. Relaxed: the reader loads it again, with
/// acquire.
/// @param flip XORed to that word, it makes the phase bit 0.
template <class Cpl>
[[nodiscard]] inline bool is_there(const Cpl* cpl, uint32_t flip) {
  return ((__atomic_load_n(&cpl->status, __ATOMIC_RELAXED) ^ flip) & kPhaseBit) == 0;
}
/// A word that the card may write meanwhile, for one use only.
[[nodiscard, gnu::always_inline]] inline uint32_t load_word(const uint32_t* word) {
  // Not an atomic load, which gcc leaves apart from a comparison.
  return base::kThreadSanitizer ? __atomic_load_n(word, __ATOMIC_RELAXED) : *word;
}
/// Write a quad of a completion that the card has written, and writes again. volatile: a compiler
/// would move the stores of a loop into one of their own, at more cost.
[[gnu::always_inline]] inline void store_quad(void* at, Quad quad) {
  if constexpr (base::kThreadSanitizer) {  // the card's store is an atomic one
    Half halves[2];
    std::memcpy(halves, &quad, sizeof halves);
    __atomic_store_n(static_cast<Half*>(at), halves[0], __ATOMIC_RELAXED);
    __atomic_store_n(static_cast<Half*>(at) + 1, halves[1], __ATOMIC_RELAXED);
  } else {
    *static_cast<volatile Quad*>(at) = quad;
  }
}
/// Leave a consumed completion without a word of the card's. @param flip as in is_there().
template <class Cpl>
[[gnu::always_inline]] inline void unwrite(Cpl* cpl, uint32_t flip) {
  auto* const quads = reinterpret_cast<Quad*>(cpl);
  if constexpr (sizeof(Cpl) > sizeof(Quad)) {
    store_quad(quads, Quad{kUnwritten, kUnwritten, kUnwritten, kUnwritten});
  }
  store_quad(quads + sizeof(Cpl) / sizeof(Quad) - 1, unwritten_quad(flip));
}
/// unwrite() for a loop over completions of 16 bytes: what it writes stays in a register.
class Unwriter {
 public:
  explicit Unwriter(uint32_t flip) : quad_(unwritten_quad(flip)) {
#if defined(__x86_64__)
    asm volatile("" : "+x"(quad_));
#else
    asm volatile("" : "+w"(quad_));
#endif
  }
  template <class Cpl>
  void unwrite(Cpl* cpl) const {
    static_assert(sizeof(Cpl) == sizeof(Quad));
    store_quad(cpl, quad_);
  }

 private:
  Quad quad_;
};

/// Where a queue is in its completion ring. One thread, hot.
struct CompletionCursor {
  void* base = nullptr;
  uint32_t mask = 0;
  uint32_t phase_shift = 0;  // moves the lap's lowest bit to bit 31
  uint32_t consumed = 0;     // free-running index of the next completion

  /// XORed to a last word, it makes the phase bit 0 if the completion at `consumed` is there.
  [[nodiscard]] uint32_t flip() const { return ~(consumed << phase_shift) & kPhaseBit; }
  /// Number of completions before the ring wraps, and the phase changes.
  [[nodiscard]] uint32_t to_wrap() const { return mask + 1 - (consumed & mask); }
  template <class Cpl>
  [[nodiscard]] Cpl* at() const {
    return static_cast<Cpl*>(base) + (consumed & mask);
  }
  /// Whether the last word of the completion at `consumed` is there.
  template <class Cpl>
  [[nodiscard]] bool ready() const {
    return is_there(at<Cpl>(), flip());
  }
  /// Take the completion at `consumed` out of the ring.
  template <class Cpl>
  void consume() {
    unwrite(at<Cpl>(), flip());
    ++consumed;
  }
};

/// Loads a completion whose last word is there, 16 bytes at once. acquire: what the card read or
/// wrote is settled; pairs with the card's write of the last word. The other words may be
/// kUnwritten.
template <class Cpl>
[[nodiscard, gnu::always_inline]] inline Cpl load_completion(const Cpl* cpl) {
  base::tsan_acquire(&cpl->status);
  Cpl copy;
  if constexpr (base::kThreadSanitizer) {  // which takes no load of a vector for an atomic one
    const auto* const halves = reinterpret_cast<const Half*>(cpl);
    for (size_t i = 0; i < sizeof(Cpl) / sizeof(Half); ++i) {
      const Half half = __atomic_load_n(halves + i, __ATOMIC_RELAXED);
      std::memcpy(reinterpret_cast<Half*>(&copy) + i, &half, sizeof half);
    }
    return copy;
  }
  for (size_t i = 0; i < sizeof(Cpl) / sizeof(Quad); ++i) {
    const Quad quad = reinterpret_cast<const volatile Quad*>(cpl)[i];
    std::memcpy(reinterpret_cast<Quad*>(&copy) + i, &quad, sizeof quad);
  }
  dma_read_barrier();
  return copy;
}
/// Whether the card has written the words that the driver uses, but for the last one. @tparam kFrom
/// the first of them.
template <uint32_t kFrom, class Cpl>
[[nodiscard, gnu::always_inline]] inline bool is_written(const Cpl& cpl) {
  constexpr uint32_t kWords = sizeof(Cpl) / sizeof(uint32_t);
  uint32_t words[kWords];
  std::memcpy(words, &cpl, sizeof words);
  bool written = true;
#pragma GCC unroll 8
  for (uint32_t i = kFrom; i + 1 < kWords; ++i) {
    written = written && words[i] != kUnwritten;
  }
  return written;
}

}  // namespace rio::pmd
