/// @file
/// Reaping of 16-byte completions, which transmit, dedicated, DMA and maintenance rings share but
/// for the meaning of one word. Inlined into each queue's reap().
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "pmd/dev/entry_window.hpp"
#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Transmit: the word is a time, the bytes are those of the entry.
struct TxReap {
  using Cpl = regs::TxCpl;
  using Done = TxDone;
  static constexpr bool kWordIsBytes = false;
  static constexpr size_t kSizeStride = sizeof(regs::TxDesc) / sizeof(uint32_t);
};

/// Dedicated, DMA: the word is the bytes landed or moved, at most those of the entry.
struct EntryReap {
  using Cpl = regs::EntryCpl;
  using Done = EntryDone;
  static constexpr bool kWordIsBytes = true;
  static constexpr size_t kSizeStride = 1;
};

// A result is the cookie and the completion's second half as it is.
static_assert(sizeof(TxDone) == 16 && offsetof(TxDone, time_ticks) == 8 &&
              offsetof(TxDone, status) == 12 && offsetof(TxDone, retries) == 13);
static_assert(sizeof(EntryDone) == 16 && offsetof(EntryDone, bytes) == 8 &&
              offsetof(EntryDone, status) == 12 && offsetof(EntryDone, retries) == 13);
static_assert(offsetof(regs::TxCpl, time) == 8 && offsetof(regs::EntryCpl, bytes) == 8 &&
              regs::tx_cpl::Status::code.lsb == 0 && regs::tx_cpl::Status::retries.lsb == 8);

/// One completion of the plain case: it is there, it is the one of entry `expected`, with kOk, and
/// its bytes are possible. Writes nothing but `out` and `bytes`.
template <class Kind>
[[nodiscard, gnu::always_inline]] inline bool take_plain(const typename Kind::Cpl& cpl,
                                                         uint32_t flip, uint32_t expected,
                                                         uint64_t cookie, uint32_t size_bytes,
                                                         typename Kind::Done* out,
                                                         uint64_t* bytes) {
  // acquire: the rest of the completion and what the card read or wrote are settled; pairs with the
  // card's write of the last word.
  const uint32_t status = dma_load_last_word(&cpl.status) ^ flip;
  if ((status & (kPhaseBit | kCodeMask)) != 0 || cpl.index != expected) {
    return false;
  }
  if constexpr (Kind::kWordIsBytes) {
    if (cpl.bytes > size_bytes) {
      return false;
    }
    *bytes += cpl.bytes;
  } else {
    *bytes += size_bytes;
  }
  out->cookie = cookie;
  // The phase bit lands in the padding.
  std::memcpy(reinterpret_cast<uint8_t*>(out) + 8, reinterpret_cast<const uint8_t*>(&cpl) + 8, 8);
  return true;
}

/// Completions of the plain case, in the order of their entries. Stops at the first that is
/// otherwise, and changes nothing but `out`. @param n at most to_wrap() of the cursor and
/// plain_in_a_row() of the window. @param sizes of the entries by slot, Kind::kSizeStride apart.
/// @return how many. @param bytes their sum is added.
template <class Kind>
[[nodiscard]] inline uint32_t reap_plain(const CompletionCursor& cursor, const EntryWindow& window,
                                         const uint32_t* sizes, typename Kind::Done* out, size_t n,
                                         uint64_t* bytes) {
  constexpr size_t kStride = Kind::kSizeStride;
  const auto* cpl = cursor.at<typename Kind::Cpl>();
  const uint32_t flip = cursor.flip();
  const size_t slot = window.oldest() & window.mask();
  const uint64_t* const cookies = window.cookies() + slot;
  sizes += slot * kStride;
  uint32_t next = window.oldest();
  uint64_t sum = 0;
  size_t k = 0;
  for (; k + 4 <= n; k += 4, next += 4) {
    uint64_t four = sum;
    if (!take_plain<Kind>(cpl[k], flip, next, cookies[k], sizes[k * kStride], &out[k], &four) ||
        !take_plain<Kind>(cpl[k + 1], flip, next + 1, cookies[k + 1], sizes[(k + 1) * kStride],
                          &out[k + 1], &four) ||
        !take_plain<Kind>(cpl[k + 2], flip, next + 2, cookies[k + 2], sizes[(k + 2) * kStride],
                          &out[k + 2], &four) ||
        !take_plain<Kind>(cpl[k + 3], flip, next + 3, cookies[k + 3], sizes[(k + 3) * kStride],
                          &out[k + 3], &four)) {
      break;  // one by one, again
    }
    sum = four;
  }
  while (k < n &&
         take_plain<Kind>(cpl[k], flip, next, cookies[k], sizes[k * kStride], &out[k], &sum)) {
    ++k;
    ++next;
  }
  *bytes += sum;
  return static_cast<uint32_t>(k);
}

/// What reap_one() found.
enum class Reaped : uint8_t { kNothing, kDropped, kGiven };

/// Any case, one completion: out of order, failed, not there, or nonsense, which is counted and
/// dropped. Changes window, cursor and stats.
template <class Kind>
[[nodiscard, gnu::noinline]] Reaped reap_one(CompletionCursor& cursor, EntryWindow& window,
                                             QueueStats& stats, const uint32_t* sizes,
                                             typename Kind::Done* out) {
  const auto* cpl = cursor.at<typename Kind::Cpl>();
  // acquire: as in reap_plain; pairs with the card's write of the last word.
  const uint32_t status = dma_load_last_word(&cpl->status) ^ cursor.flip();
  if ((status & kPhaseBit) != 0) {
    return Reaped::kNothing;
  }
  ++cursor.consumed;
  const uint32_t index = cpl->index;
  if (!window.complete(index)) {
    ++stats.bad_completions;
    return Reaped::kDropped;
  }
  const uint32_t slot = index & window.mask();
  uint32_t word = 0;
  std::memcpy(&word, reinterpret_cast<const uint8_t*>(cpl) + 8, sizeof word);
  out->cookie = window.cookies()[slot];
  out->status = static_cast<Status>(regs::tx_cpl::Status::code.get(status));
  out->retries = static_cast<uint8_t>(regs::tx_cpl::Status::retries.get(status));
  uint32_t bytes = sizes[slot * Kind::kSizeStride];
  if constexpr (Kind::kWordIsBytes) {
    if (word > bytes) {  // the entry is ours again, but what is in it nobody knows
      ++stats.bad_completions;
      out->status = Status::kFormat;
      word = 0;
    }
    bytes = word;
    out->bytes = word;
  } else {
    out->time_ticks = word;
  }
  if (out->status == Status::kOk) {
    ++stats.messages;
    stats.bytes += bytes;
  } else {
    ++stats.failed;
  }
  return Reaped::kGiven;
}

/// Up to `n` completions into `out`, looking at no more than `n`. @return how many.
template <class Kind>
[[nodiscard]] inline uint32_t reap_burst(CompletionCursor& cursor, EntryWindow& window,
                                         QueueStats& stats, const uint32_t* sizes,
                                         typename Kind::Done* out, uint32_t n) {
  uint32_t looked = 0;
  uint32_t given = 0;
  while (looked < n && window.used() != 0) {
    const uint32_t run = std::min({n - looked, cursor.to_wrap(), window.plain_in_a_row()});
    const uint32_t plain = reap_plain<Kind>(cursor, window, sizes, out + given, run, &stats.bytes);
    cursor.consumed += plain;
    window.complete_in_order(plain);
    stats.messages += plain;
    given += plain;
    looked += plain;
    if (plain == run && run != 0) {
      continue;
    }
    const Reaped one = reap_one<Kind>(cursor, window, stats, sizes, out + given);
    if (one == Reaped::kNothing) {
      break;
    }
    ++looked;
    given += one == Reaped::kGiven ? 1 : 0;
  }
  return given;
}

}  // namespace rio::pmd
