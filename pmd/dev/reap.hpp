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
//   Raw load(cpl)                             what is checked, read once, since the card may lie
//   twice uint32_t bytes(raw, size)                 bytes that the card says it moved void
//   fill(cpl, raw, status, cookie, done)      all fields; status is the code in the last word void
//   spoil(done)                          the card's bytes are impossible: kFormat, none

/// Second half of a 16-byte completion, in one load.
template <class Cpl>
[[nodiscard]] inline uint64_t load_second_half(const Cpl& cpl) {
  static_assert(sizeof(Cpl) == 16);
  const auto* const half = reinterpret_cast<const uint64_t*>(&cpl) + 1;
  return __atomic_load_n(half, __ATOMIC_RELAXED);
}

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
    const auto raw = Kind::load(cpl[i]);
    const uint32_t moved = Kind::bytes(raw, size);
    if (moved > size) {
      return false;
    }
    *bytes += moved;
    Kind::fill(cpl[i], raw, Status::kOk, cookies[slot + i], &out[i]);
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
[[gnu::always_inline]] inline uint32_t PostingQueue::reap_plain(typename Kind::Done* out,
                                                                uint32_t limit) {
  const uint32_t n = std::min({limit, cursor_.to_wrap(), window_.plain_in_a_row()});
  const uint32_t first = window_.oldest();
  PlainRun<Kind> run{cursor_.at<typename Kind::Cpl>(),
                     window_.cookies(),
                     sizes_,
                     out,
                     first & window_.mask(),
                     first,
                     cursor_.flip()};
  uint64_t bytes = 0;
  uint32_t left = n;
  while (left >= 4) {
    const uint32_t taken = !run.take(0, &bytes)   ? 0
                           : !run.take(1, &bytes) ? 1
                           : !run.take(2, &bytes) ? 2
                           : !run.take(3, &bytes) ? 3
                                                  : 4;
    run.skip(taken);
    left -= taken;
    if (taken != 4) {
      break;
    }
  }
  while (left != 0 && run.take(0, &bytes)) {
    run.skip(1);
    --left;
  }
  const uint32_t done = n - left;
  cursor_.consumed += done;
  window_.complete_in_order(done);
  stats_.messages += done;
  stats_.bytes += bytes;
  return done;
}

/// Any completions: out of order, failed, or nonsense, which is counted and dropped.
/// @param limit how many to look at. @return how many are in `out`.
template <class Kind>
[[gnu::noinline]] uint32_t PostingQueue::reap_any(typename Kind::Done* out, uint32_t limit) {
  CompletionCursor cursor = cursor_;
  QueueStats counts;
  uint32_t given = 0;
  for (uint32_t looked = 0; looked < limit && window_.used() != 0; ++looked) {
    const auto& cpl = *cursor.at<typename Kind::Cpl>();
    // acquire: as in take; pairs with the card's write of the last word.
    const uint32_t status = dma_load_last_word(&cpl.status) ^ cursor.flip();
    if ((status & kPhaseBit) != 0) {
      break;
    }
    ++cursor.consumed;
    const uint32_t index = cpl.index;
    if (!window_.complete(index)) [[unlikely]] {
      ++counts.bad_completions;
      continue;
    }
    const size_t slot = index & window_.mask();
    const uint32_t size = Kind::size(sizes_, slot);
    const auto raw = Kind::load(cpl);
    const uint32_t bytes = Kind::bytes(raw, size);
    const auto code = static_cast<Status>(regs::tx_cpl::Status::code.get(status));
    Kind::fill(cpl, raw, code, window_.cookies()[slot], &out[given]);
    ++given;
    if (bytes > size) [[unlikely]] {  // the entry is ours again, but nobody knows what is in it
      ++counts.bad_completions;
      Kind::spoil(&out[given - 1]);
    } else if (code == Status::kOk) {
      ++counts.messages;
      counts.bytes += bytes;
    }
  }
  cursor_.consumed = cursor.consumed;
  stats_.messages += counts.messages;
  stats_.bytes += counts.bytes;
  stats_.failed += given - counts.messages;
  stats_.bad_completions += counts.bad_completions;
  return given;
}

/// A queue's whole reaping: up to `n` completions into `out`; when there is none, call the poll
/// hook once and look again. @return how many.
template <class Kind>
[[gnu::always_inline]] inline uint16_t PostingQueue::reap_burst(typename Kind::Done* out,
                                                                uint16_t n) {
  uint32_t given = reap_plain<Kind>(out, n);
  if (given < n && window_.used() != 0 && cursor_.ready<typename Kind::Cpl>()) {
    given += reap_any<Kind>(out + given, n - given);
  }
  if (given == 0 && n != 0) [[unlikely]] {
    hook_();
    given = reap_any<Kind>(out, n);
  }
  return static_cast<uint16_t>(given);
}

}  // namespace rio::pmd
