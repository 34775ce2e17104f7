/// @file
/// Reaping: what the rings with submissions share on the way back. Each queue instantiates it with
/// a Kind, which knows one form of completion. Included by the queues' sources only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pmd/dev/entry_window.hpp"
#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

// A Kind has:
//   Cpl, Done                                 what the card writes and what the user gets
//   uint32_t size(sizes, slot)                bytes of the entry, as the driver knows them
//   uint32_t bytes(cpl, size)                 bytes that the card says it moved
//   void fill(cpl, status, cookie, done)      all fields; status is the last word without its phase
//   void spoil(done)                          the card's bytes are impossible: kFormat, none

/// What the burst functions of one queue reap with. One thread.
struct Reap {
  CompletionCursor& cursor;
  EntryWindow& window;
  QueueStats& stats;
  const uint32_t* sizes;  ///< as Kind::size wants them
};

/// Where the plain case is in its rings.
template <class Kind>
struct PlainRun {
  const typename Kind::Cpl* cpl;
  const uint64_t* cookies;
  const uint32_t* sizes;
  typename Kind::Done* out;
  size_t slot;
  uint32_t first;  // index of the entry that is expected first
  uint32_t flip;

  /// Completion `i` if it is plain: it is there, in the order of the entries, with kOk, and its
  /// bytes are possible. Writes nothing but `out` and `bytes`.
  [[nodiscard, gnu::always_inline]] bool take(uint32_t i, uint64_t* bytes) const {
    // acquire: the rest of the completion and what the card read or wrote are settled; pairs with
    // the card's write of the last word.
    const uint32_t status = dma_load_last_word(&cpl[i].status) ^ flip;
    if ((status & (kPhaseBit | kCodeMask)) != 0 || cpl[i].index != first + i) {
      return false;
    }
    const uint32_t size = Kind::size(sizes, slot + i);
    const uint32_t moved = Kind::bytes(cpl[i], size);
    if (moved > size) {
      return false;
    }
    Kind::fill(cpl[i], status, cookies[slot + i], &out[i]);
    *bytes += moved;
    return true;
  }
  [[gnu::always_inline]] void skip(uint32_t count) {
    cpl += count;
    out += count;
    slot += count;
    first += count;
  }
};

/// Completions of the plain case, as many as there are before either ring wraps. Stops at the first
/// that is otherwise. @return how many.
template <class Kind>
[[nodiscard, gnu::always_inline]] inline uint32_t reap_plain(const Reap& reap,
                                                             typename Kind::Done* out,
                                                             uint32_t limit) {
  const uint32_t n = std::min({limit, reap.cursor.to_wrap(), reap.window.plain_in_a_row()});
  const uint32_t first = reap.window.oldest();
  PlainRun<Kind> run{reap.cursor.at<typename Kind::Cpl>(),
                     reap.window.cookies(),
                     reap.sizes,
                     out,
                     first & reap.window.mask(),
                     first,
                     reap.cursor.flip()};
  uint64_t bytes = 0;
  uint32_t left = n;
  while (left >= 4) {
    uint64_t four = bytes;
    if (!run.take(0, &four) || !run.take(1, &four) || !run.take(2, &four) || !run.take(3, &four)) {
      break;  // one by one, again
    }
    run.skip(4);
    bytes = four;
    left -= 4;
  }
  while (left != 0 && run.take(0, &bytes)) {
    run.skip(1);
    --left;
  }
  const uint32_t done = n - left;
  reap.cursor.consumed += done;
  reap.window.complete_in_order(done);
  reap.stats.messages += done;
  reap.stats.bytes += bytes;
  return done;
}

/// Any completions: out of order, failed, or nonsense, which is counted and dropped.
/// @param limit how many to look at. @return how many are in `out`.
template <class Kind>
[[nodiscard, gnu::noinline]] uint32_t reap_any(const Reap& reap, typename Kind::Done* out,
                                               uint32_t limit) {
  CompletionCursor cursor = reap.cursor;
  EntryWindow& window = reap.window;
  uint32_t given = 0;
  for (uint32_t looked = 0; looked < limit && window.used() != 0; ++looked) {
    const auto& cpl = *cursor.at<typename Kind::Cpl>();
    // acquire: as in take_plain; pairs with the card's write of the last word.
    const uint32_t status = dma_load_last_word(&cpl.status) ^ cursor.flip();
    if ((status & kPhaseBit) != 0) {
      break;
    }
    ++cursor.consumed;
    const uint32_t index = cpl.index;
    if (!window.complete(index)) [[unlikely]] {
      ++reap.stats.bad_completions;
      continue;
    }
    const size_t slot = index & window.mask();
    const uint32_t size = Kind::size(reap.sizes, slot);
    uint32_t bytes = Kind::bytes(cpl, size);
    Kind::fill(cpl, status, window.cookies()[slot], &out[given]);
    if (bytes > size) [[unlikely]] {  // the entry is ours again, but nobody knows what is in it
      ++reap.stats.bad_completions;
      Kind::spoil(&out[given]);
      bytes = 0;
    }
    const bool ok = out[given].status == Status::kOk;
    reap.stats.messages += ok ? 1 : 0;
    reap.stats.bytes += ok ? bytes : 0;
    reap.stats.failed += ok ? 0 : 1;
    ++given;
  }
  reap.cursor.consumed = cursor.consumed;
  return given;
}

/// A queue's whole reaping: up to `n` completions into `out`; when there is none, call the poll
/// hook once and look again. @return how many.
template <class Kind>
[[nodiscard, gnu::always_inline]] inline uint16_t reap_burst(const Reap& reap, const PollHook& hook,
                                                             typename Kind::Done* out, uint16_t n) {
  uint32_t given = reap_plain<Kind>(reap, out, n);
  if (given < n && reap.window.used() != 0 && reap.cursor.template ready<typename Kind::Cpl>()) {
    given += reap_any<Kind>(reap, out + given, n - given);
  }
  if (given == 0 && n != 0) [[unlikely]] {
    hook();
    given = reap_any<Kind>(reap, out, n);
  }
  return static_cast<uint16_t>(given);
}

}  // namespace rio::pmd
