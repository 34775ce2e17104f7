/// @file
/// Reaping, the common part of all rings with submissions. Each queue instantiates it with a Kind,
/// which knows one form of completion. Only the queues' sources include this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/tsan.hpp"
#include "pmd/dev/entry_window.hpp"
#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

// A Kind has:
//   Cpl, Done                                  what the card writes and what the user gets
//   kFrom                                      the first word of a completion that is used
//   uint32_t size(sizes, slot)                 bytes of the entry, as the driver knows them
//   uint32_t bytes(cpl)                        bytes that the card says it moved
//   fill(cpl, status, cookie, done)            all fields; status is the code in the last word
//   spoil(done)                                the card's bytes are impossible: kFormat, none

/// Of dedicated, DMA and maintenance rings; sizes are those of the EntryWindow.
struct EntryReap {
  using Cpl = regs::EntryCpl;
  using Done = EntryDone;
  static constexpr uint32_t kFrom = 1;  // the cookie is the window's
  static uint32_t size(const uint32_t* sizes, size_t slot) { return sizes[slot]; }
  static uint32_t bytes(const Cpl& cpl) { return cpl.bytes; }
  static void fill(const Cpl& cpl, Status status, uint64_t cookie, Done* out) {
    const uint32_t retries = regs::entry_cpl::Status::retries.get(cpl.status);
    *out = {cookie, cpl.bytes, status, static_cast<uint8_t>(retries)};
  }
  static void spoil(Done* out) {
    out->status = Status::kFormat;
    out->bytes = 0;
  }
};

/// Two completions of 16 bytes, or what a queue makes of them.
using Pair [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = uint32_t;
using Words [[gnu::vector_size(32)]] = uint32_t;
using Cookies [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = uint64_t;

/// Whether kCount completions are there. The last one is checked first: mostly it is not. acquire:
/// their payload, too; pairs with the card's write of the last word.
template <uint32_t kCount, class Cpl>
[[nodiscard, gnu::always_inline]] inline bool all_there(const Cpl* cpl, uint32_t flip) {
  // The thread sanitizer takes no load of a vector for an atomic one: there, all go one by one.
  if (base::kThreadSanitizer || !is_there(cpl + kCount - 1, flip)) {
    return false;
  }
  dma_read_barrier();
  return true;
}
/// Leave two consumed completions without a word of the card's.
[[gnu::always_inline]] inline void unwrite_pair(void* cpl, uint32_t flip) {
  *static_cast<Pair*>(cpl) =
      __builtin_shufflevector(unwritten_quad(flip), unwritten_quad(flip), 0, 1, 2, 3, 4, 5, 6, 7);
}
/// Set *out to two cookies, each in the first words of its half.
[[gnu::always_inline]] inline void spread(const uint64_t* cookies, Words* out) {
  const Cookies both = *reinterpret_cast<const Cookies*>(cookies);
  using Wide [[gnu::vector_size(32)]] = uint64_t;
  *out = reinterpret_cast<Words>(Wide(__builtin_shufflevector(both, both, 0, 0, 1, 1)));
}
/// The words of a vector, ORed.
[[nodiscard, gnu::always_inline]] inline uint64_t any_of(const Words& words) {
  using Four [[gnu::vector_size(32)]] = uint64_t;
  const auto four = reinterpret_cast<Four>(words);
  return four[0] | four[1] | four[2] | four[3];
}

static_assert(sizeof(Pair) == 2 * sizeof(regs::EntryCpl) && sizeof(Pair) == 2 * sizeof(EntryDone));
static_assert(offsetof(regs::EntryCpl, index) == 4 && offsetof(regs::EntryCpl, bytes) == 8 &&
              offsetof(regs::EntryCpl, status) == 12 && offsetof(EntryDone, bytes) == 8 &&
              offsetof(EntryDone, status) == 12 && offsetof(EntryDone, retries) == 13 &&
              regs::entry_cpl::Status::code.lsb == 0 && regs::entry_cpl::Status::retries.lsb == 8);

/// Hot. Takes plain completions up to the first that is not plain, at most `n`, which do not wrap:
/// most of them two at a time. @param run has take<kPairs>(), which takes all of these pairs or
/// none, and take_one().
template <class Run>
[[gnu::always_inline]] inline void take_in_pairs(Run& run, uint32_t n) {
  for (; n >= 8 && run.template take<4>(); n -= 8) {
  }
  for (; n >= 2 && run.template take<1>(); n -= 2) {
  }
  if (n != 0) {
    run.take_one();
  }
}

/// Position of the fast path in its rings: completions in order, all kOk.
struct EntryRun {
  regs::EntryCpl* cpl;
  const uint64_t* cookies;
  const uint32_t* sizes;
  EntryDone* out;
  uint32_t index;  // that is expected first
  uint32_t flip;   // of the last words
  uint64_t bytes = 0;

  /// Takes the next completions if all are plain. Writes `out` in any case. @return false: it took
  /// none.
  template <uint32_t kPairs>
  [[nodiscard, gnu::always_inline]] bool take() {
    constexpr uint32_t kTogether = 2 * kPairs;
    if (!all_there<kTogether>(cpl, flip)) {
      return false;
    }
    Words good = {0, index, 0, flip, 0, index + 1, 0, flip};
    constexpr Words kNext = {0, 2, 0, 0, 0, 2, 0, 0};
    Words wrong = {};
    Words misfit = {};
    Words sum = {};
#pragma GCC unroll 4
    for (size_t i = 0; i < kPairs; ++i) {
      const Words rest = *reinterpret_cast<const Pair*>(cpl + 2 * i) ^ good;
      good += kNext;
      wrong |= rest;
      const Words size = {0, 0, sizes[2 * i], 0, 0, 0, sizes[2 * i + 1], 0};
      // The card may report any number, and all ones if it has not written it; sizes are far
      // smaller: the top bit of either term is enough.
      misfit |= (size - rest) | rest;
      sum += rest;
      Words cookie;
      spread(cookies + 2 * i, &cookie);
      *reinterpret_cast<Pair*>(out + 2 * i) =
          __builtin_shufflevector(cookie, rest, 0, 1, 10, 11, 4, 5, 14, 15);
    }
    constexpr Words kWrong = {0, ~0u, 0, kPhaseBit | kCodeMask, 0, ~0u, 0, kPhaseBit | kCodeMask};
    constexpr Words kTop = {0, 0, 1u << 31, 0, 0, 0, 1u << 31, 0};
    if (any_of((wrong & kWrong) | (misfit & kTop)) != 0) [[unlikely]] {
      return false;
    }
    for (uint32_t i = 0; i < kTogether; i += 2) {
      unwrite_pair(cpl + i, flip);
    }
    bytes += uint64_t{sum[2]} + sum[6];
    pass(kTogether);
    return true;
  }
  /// Takes the next completion if it is there and plain.
  [[gnu::always_inline]] void take_one() {
    if (base::kThreadSanitizer && !is_there(cpl, flip)) {
      return;
    }
    const regs::EntryCpl seen = load_completion(cpl);
    // A word that the card has not written yet is all ones: too large for a size, and equal to the
    // index only where that is what the card writes there.
    if (((seen.status ^ flip) & (kPhaseBit | kCodeMask)) != 0 || seen.index != index ||
        seen.bytes > *sizes) {
      return;
    }
    EntryReap::fill(seen, Status::kOk, *cookies, out);
    unwrite(cpl, flip);
    bytes += seen.bytes;
    pass(1);
  }
  void pass(uint32_t count) {
    cpl += count;
    cookies += count;
    sizes += count;
    out += count;
    index += count;
  }
};

/// Takes plain completions until either ring wraps. Stops at the first that is not plain. @return
/// how many.
[[gnu::always_inline]] inline uint32_t PostingQueue::reap_plain(EntryDone* out, uint32_t limit) {
  const uint32_t first = window_.oldest();
  const uint32_t slot = first & window_.mask();
  EntryRun run{.cpl = cursor_.at<regs::EntryCpl>(),
               .cookies = window_.cookies() + slot,
               .sizes = sizes_ + slot,
               .out = out,
               .index = first,
               .flip = cursor_.flip()};
  take_in_pairs(run, std::min({limit, cursor_.to_wrap(), window_.plain_in_a_row()}));
  const uint32_t done = run.index - first;
  pass_plain(done, run.bytes);
  return done;
}

/// Takes any completions: out of order, failed, or nonsense, which is counted and dropped. @param
/// limit how many to look at. @return how many are in `out`.
template <class Kind>
[[gnu::noinline]] uint32_t PostingQueue::reap_any(typename Kind::Done* out, uint32_t limit) {
  using Cpl = typename Kind::Cpl;
  CompletionCursor cursor = cursor_;
  QueueStats counts;
  uint32_t given = 0;
  for (uint32_t looked = 0; looked < limit && window_.used() != 0; ++looked) {
    if (!cursor.template ready<Cpl>()) {
      break;
    }
    const Cpl* const at = cursor.template at<Cpl>();
    Cpl cpl = load_completion(at);
    bool good = is_written<Kind::kFrom>(cpl) && window_.complete(cpl.index);
    if (!good) [[unlikely]] {
      cpl = look_again<Kind::kFrom>(at, [this](const Cpl& c) { return window_.has(c.index); });
      good = window_.complete(cpl.index);
    }
    cursor.template consume<Cpl>();
    if (!good) [[unlikely]] {
      ++counts.bad_completions;
      continue;
    }
    const size_t slot = cpl.index & window_.mask();
    const uint32_t bytes = Kind::bytes(cpl);
    const auto code = static_cast<Status>(cpl.status & kCodeMask);
    Kind::fill(cpl, code, window_.cookies()[slot], &out[given]);
    ++given;
    if (bytes > Kind::size(sizes_, slot)) [[unlikely]] {  // the entry is ours again; its content is
                                                          // unknown
      ++counts.bad_completions;
      Kind::spoil(&out[given - 1]);
    } else if (code == Status::kOk) {
      ++counts.messages;
      counts.bytes += bytes;
    }
  }
  cursor_.consumed = cursor.consumed;
  stats_.messages.add(counts.messages);
  stats_.bytes.add(counts.bytes);
  stats_.failed.add(given - counts.messages);
  stats_.bad_completions.add(counts.bad_completions);
  return given;
}

/// Takes completions that are there, up to `n`. Not inlined, so that an empty poll saves no
/// registers.
[[gnu::noinline]] inline uint16_t PostingQueue::reap_ready(EntryDone* out, uint16_t n) {
  uint32_t given = reap_plain(out, n);
  if (given < n && window_.used() != 0 && cursor_.ready<regs::EntryCpl>()) {
    given += reap_any<EntryReap>(out + given, n - given);
  }
  return static_cast<uint16_t>(given);
}

/// The whole reaping of dedicated, DMA and maintenance queues: up to `n` completions into `out`;
/// when there is none, call the poll hook once and look again. @return how many.
[[gnu::always_inline]] inline uint16_t PostingQueue::reap_burst(EntryDone* out, uint16_t n) {
  if (!cursor_.ready<regs::EntryCpl>()) {
    if (n == 0) {
      return 0;
    }
    hook_();
    if (!cursor_.ready<regs::EntryCpl>()) {
      return 0;
    }
  }
  return reap_ready(out, n);
}

}  // namespace rio::pmd
