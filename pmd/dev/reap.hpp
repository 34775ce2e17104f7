/// @file
/// Reaping, the common part of all rings with submissions. Each queue instantiates it with a Kind,
/// which knows one form of completion. Only the queues' sources include this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/tsan.hpp"
#include "pmd/dev/entry_window.hpp"
#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

// A Kind has:
//   Cpl, Done                              what the card writes and what the user gets
//   uint32_t size(sizes, slot)             bytes of the entry, as the driver knows them
//   Raw load(cpl)                          what is checked, read once, since the card may lie twice
//   uint64_t last(raw)                     the last two words
//   uint32_t bytes(raw, size)              bytes that the card says it moved
//   uint32_t misfit(raw, size)             top bit: bytes are more than the entry has
//   fill(cpl, raw, status, cookie, done)   all fields; status is the code in the last word
//   spoil(done)                            the card's bytes are impossible: kFormat, none

/// The part of a Kind whose results are the cookie and the last two words of the completion, copied
/// as they are; the phase lands in the padding.
template <class OfCpl, class OfDone>
struct TailReap {
  using Cpl = OfCpl;
  using Done = OfDone;
  using Raw = uint64_t;
  static_assert(sizeof(Done) == 16 && offsetof(Done, status) == 12 &&
                offsetof(Done, retries) == 13 && offsetof(Cpl, status) == 12);
  static_assert(regs::tx_cpl::Status::code.lsb == 0 && regs::tx_cpl::Status::retries.lsb == 8 &&
                regs::entry_cpl::Status::code.lsb == 0 &&
                regs::entry_cpl::Status::retries.lsb == 8);
  static Raw load(const Cpl& cpl) { return load_last_words(cpl); }
  static uint64_t last(Raw raw) { return raw; }
  static void fill(const Cpl& /*cpl*/, Raw raw, Status /*status*/, uint64_t cookie, Done* out) {
    out->cookie = cookie;
    std::memcpy(reinterpret_cast<uint8_t*>(out) + 8, &raw, sizeof raw);
  }
};

static_assert(offsetof(EntryDone, bytes) == 8 && offsetof(regs::EntryCpl, bytes) == 8);

/// Of dedicated, DMA and maintenance rings; sizes are those of the EntryWindow.
struct EntryReap : TailReap<regs::EntryCpl, EntryDone> {
  static uint32_t size(const uint32_t* sizes, size_t slot) { return sizes[slot]; }
  static uint32_t bytes(Raw raw, uint32_t /*size*/) { return static_cast<uint32_t>(raw); }
  static uint32_t misfit(Raw raw, uint32_t size) {
    // The card may report any number, but sizes end at 64 KiB: the top bit of either term is
    // enough.
    return (size - static_cast<uint32_t>(raw)) | static_cast<uint32_t>(raw);
  }
  static void spoil(Done* out) {
    out->status = Status::kFormat;
    out->bytes = 0;
  }
};

/// Position of the fast path in its rings: completions in order, all kOk.
template <class Kind>
struct PlainRun {
  const typename Kind::Cpl* cpl;
  const uint64_t* cookies;
  const uint32_t* sizes;
  typename Kind::Done* out;
  size_t slot;
  uint32_t first;  // index of the entry that is expected first
  uint64_t flip;   // of the last two words

  /// The faults of several completions, ORed: in the last words, in the indices, and, in the top
  /// bit, sizes that do not fit.
  struct Wrong {
    uint64_t last_words = 0;
    uint32_t indices = 0;
    uint32_t sizes = 0;

    [[nodiscard, gnu::always_inline]] bool nothing() const {
      return (last_of(last_words) & (kPhaseBit | kCodeMask)) == 0 && indices == 0 &&
             static_cast<int32_t>(sizes) >= 0;
    }
  };

  /// Adds completion `i`, which is plain if it is there, in the order of the entries, kOk, and of a
  /// possible size.
  [[gnu::always_inline]] void add(uint32_t i, uint32_t* bytes, Wrong* wrong) const {
    const auto raw = Kind::load(cpl[i]);
    const uint32_t size = Kind::size(sizes, slot + i);
    const uint32_t moved = Kind::bytes(raw, size);
    Kind::fill(cpl[i], raw, Status::kOk, cookies[slot + i], &out[i]);
    wrong->last_words |= Kind::last(raw) ^ flip;
    keep_in_register(wrong->last_words);
    wrong->indices |= cpl[i].index ^ (first + i);
    keep_in_register(wrong->indices);
    wrong->sizes |= Kind::misfit(raw, size);
    keep_in_register(wrong->sizes);
    *bytes += moved;
    keep_in_register(*bytes);
  }
  /// Takes the next completions if all are plain. Writes `out` in any case, `bytes` only if it
  /// takes them. @return false: it took none.
  template <uint32_t... kI>
  [[nodiscard, gnu::always_inline]] bool take(std::integer_sequence<uint32_t, kI...> /*each*/,
                                              uint64_t* bytes) {
    constexpr uint32_t kCount = sizeof...(kI);
    if (kCount > 1 && !there(kCount - 1)) {
      return false;  // the last one is missing: do not load the others in vain
    }
    if constexpr (base::kThreadSanitizer) {
      if (!(there(kI) && ...)) {
        return false;
      }
    }
    Wrong wrong;
    uint32_t sum = 0;
    (add(kI, &sum, &wrong), ...);
    if (!wrong.nothing()) [[unlikely]] {
      return false;
    }
    *bytes += sum;
    cpl += kCount;
    out += kCount;
    slot += kCount;
    first += kCount;
    return true;
  }
  /// Relaxed: the completion is loaded again.
  [[nodiscard, gnu::always_inline]] bool there(uint32_t i) const {
    const uint32_t status = __atomic_load_n(&cpl[i].status, __ATOMIC_RELAXED);
    return ((status ^ last_of(flip)) & kPhaseBit) == 0;
  }
};

/// Takes plain completions until either ring wraps. Stops at the first that is not plain. @return
/// how many.
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
                     uint64_t{cursor_.flip()} << 32};
  constexpr std::make_integer_sequence<uint32_t, 8> kEight;
  constexpr std::make_integer_sequence<uint32_t, 1> kOne;
  uint64_t bytes = 0;
  uint32_t left = n;
  while (left >= 8 && run.take(kEight, &bytes)) {
    left -= 8;
  }
  while (left != 0 && run.take(kOne, &bytes)) {
    --left;
  }
  const uint32_t done = n - left;
  cursor_.consumed += done;
  window_.complete_in_order(done);
  stats_.messages.add(done);
  stats_.bytes.add(bytes);
  return done;
}

/// Takes any completions: out of order, failed, or nonsense, which is counted and dropped. @param
/// limit how many to look at. @return how many are in `out`.
template <class Kind>
[[gnu::noinline]] uint32_t PostingQueue::reap_any(typename Kind::Done* out, uint32_t limit) {
  CompletionCursor cursor = cursor_;
  QueueStats counts;
  uint32_t given = 0;
  for (uint32_t looked = 0; looked < limit && window_.used() != 0; ++looked) {
    const auto& cpl = *cursor.at<typename Kind::Cpl>();
    if constexpr (base::kThreadSanitizer) {
      if (!cursor.template ready<typename Kind::Cpl>()) {
        break;
      }
    }
    const auto raw = Kind::load(cpl);
    const uint32_t status = last_of(Kind::last(raw)) ^ cursor.flip();
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
    const uint32_t bytes = Kind::bytes(raw, size);
    const auto code = static_cast<Status>(regs::tx_cpl::Status::code.get(status));
    Kind::fill(cpl, raw, code, window_.cookies()[slot], &out[given]);
    ++given;
    if (bytes > size) [[unlikely]] {  // the entry is ours again; its content is unknown
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
template <class Kind>
[[gnu::noinline]] uint16_t PostingQueue::reap_ready(typename Kind::Done* out, uint16_t n) {
  uint32_t given = reap_plain<Kind>(out, n);
  if (given < n && window_.used() != 0 && cursor_.ready<typename Kind::Cpl>()) {
    given += reap_any<Kind>(out + given, n - given);
  }
  return static_cast<uint16_t>(given);
}

/// A queue's whole reaping: up to `n` completions into `out`; when there is none, call the poll
/// hook once and look again. @return how many.
template <class Kind>
[[gnu::always_inline]] inline uint16_t PostingQueue::reap_burst(typename Kind::Done* out,
                                                                uint16_t n) {
  if (!cursor_.ready<typename Kind::Cpl>()) {
    if (n == 0) {
      return 0;
    }
    hook_();
    if (!cursor_.ready<typename Kind::Cpl>()) {
      return 0;
    }
  }
  return n == 1 ? static_cast<uint16_t>(reap_any<Kind>(out, 1)) : reap_ready<Kind>(out, n);
}

}  // namespace rio::pmd
