#include "pmd/dev/shared_rx_queue.hpp"

#include <algorithm>
#include <cstring>

#include "pmd/dev/reap.hpp"

namespace rio::pmd {
namespace {

using LongPlace = regs::shared_cpl::Place;

// Written as whole words.
static_assert(offsetof(RxMessage, source) == 8 && offsetof(RxMessage, dest_id) == 12 &&
              offsetof(RxMessage, arrival) == 16 && offsetof(RxMessage, time_ticks) == 20 &&
              offsetof(RxMessage, length_bytes) == 24 && offsetof(RxMessage, mbox) == 26 &&
              offsetof(RxMessage, letter) == 27 && offsetof(RxMessage, segments) == 28 &&
              offsetof(RxMessage, status) == 29);

// The long format, any completion; every buffer holds kMessageBytesMax.
struct SharedReap {
  using Cpl = regs::SharedCpl;
  using Done = RxMessage;
  static uint32_t size(const uint32_t* /*sizes*/, size_t /*slot*/) {
    return regs::kMessageBytesMax;
  }
  static constexpr uint32_t kFrom = 0;
  static uint32_t bytes(const Cpl& cpl) { return cpl.length; }
  static void fill(const Cpl& cpl, Status status, uint64_t cookie, Done* out) {
    *out = {.cookie = cookie,
            .source = cpl.source,
            .dest_id = cpl.dest_id,
            .arrival = cpl.arrival,
            .time_ticks = cpl.time,
            .length_bytes = cpl.length,
            .mbox = static_cast<uint8_t>(LongPlace::mbox.get(cpl.place)),
            .letter = static_cast<uint8_t>(LongPlace::letter.get(cpl.place)),
            .segments = cpl.segments,
            .status = status};
  }
  static void spoil(Done* out) {
    out->status = Status::kFormat;
    out->length_bytes = 0;
  }
};

// The short format, any completion. The own destID and the arrival number are only what the
// completion has of them: the entry of the receive map, and the low bits.
struct ShortReap {
  using Cpl = regs::SharedShortCpl;
  using Done = RxMessage;
  using Place = regs::shared_short_cpl::Place;
  static uint32_t size(const uint32_t* /*sizes*/, size_t /*slot*/) {
    return regs::kMessageBytesMax;
  }
  static constexpr uint32_t kFrom = 0;
  static uint32_t bytes(const Cpl& cpl) { return Place::length.get(cpl.place); }
  static void fill(const Cpl& cpl, Status status, uint64_t cookie, Done* out) {
    *out = {.cookie = cookie,
            .source = cpl.source,
            .dest_id = Place::map_entry.get(cpl.place),
            .arrival = regs::shared_short_cpl::Status::arrival.get(cpl.status),
            .time_ticks = 0,
            .length_bytes = static_cast<uint16_t>(Place::length.get(cpl.place)),
            .mbox = static_cast<uint8_t>(Place::mbox.get(cpl.place)),
            .letter = static_cast<uint8_t>(Place::letter.get(cpl.place)),
            .segments = static_cast<uint8_t>(Place::segments.get(cpl.place) + 1),
            .status = status};
  }
  static void spoil(Done* out) { SharedReap::spoil(out); }
  /// Sets the own destID, and the arrival number: the one nearest to an earlier message's that has
  /// its low bits. @param arrival of that message. @return the message's arrival number.
  static uint32_t complete(uint32_t own_id, uint32_t arrival, Done* out) {
    constexpr uint32_t kUp = 32 - regs::shared_short_cpl::Status::arrival.width;
    const uint32_t step = (out->arrival - arrival) << kUp;
    out->dest_id = own_id;
    out->arrival = arrival + static_cast<uint32_t>(static_cast<int32_t>(step) >> kUp);
    return out->arrival;
  }
};

using Signed [[gnu::vector_size(32)]] = int32_t;
static_assert(sizeof(Pair) == 2 * sizeof(regs::SharedShortCpl) && sizeof(RxMessage) == 32);
static_assert(offsetof(regs::SharedShortCpl, place) == 4 &&
              offsetof(regs::SharedShortCpl, index) == 8 &&
              offsetof(regs::SharedShortCpl, status) == 12);

/// Decodes plain short completions, two at a time: a vector has the words of both.
struct ShortRun {
  using Place = regs::shared_short_cpl::Place;
  static_assert(Place::length.lsb == 0 && Place::length.width == 13 && Place::segments.lsb == 13 &&
                Place::mbox.lsb == 17 && Place::letter.lsb == 23 && Place::map_entry.lsb == 25);

  regs::SharedShortCpl* cpl;
  const uint64_t* cookies;
  RxMessage* out;
  uint32_t index;  // that is expected first
  uint32_t flip;   // of the last words
  uint32_t map_entry;
  uint32_t own_id;
  uint32_t arrival;  // of an earlier message: those of these are near
  uint64_t bytes = 0;

  /// Takes plain completions, up to `n`, which do not wrap.
  [[gnu::always_inline]] void take_all(uint32_t n) { take_in_pairs(*this, n); }
  /// Takes the next completions if they are there and all plain: in the order of the buffers, kOk,
  /// by the same entry of the receive map. Writes `out` in any case. @tparam kPairs decoded before
  /// their faults are looked at. @return false: took none.
  template <uint32_t kPairs>
  [[nodiscard, gnu::always_inline]] bool take() {
    constexpr uint32_t kTogether = 2 * kPairs;
    if (!all_there<kTogether>(cpl, flip)) {
      return false;
    }
    const uint32_t entry = map_entry << Place::map_entry.lsb;
    Words good = {0, entry, index, flip, 0, entry, index + 1, flip};
    constexpr Words kNext = {0, 0, 2, 0, 0, 0, 2, 0};
    Words wrong = {};
    Words longest = {};
    Words most = {};  // all ones in a word that the card has not written
    Words sum = {};
#pragma GCC unroll 4
    for (size_t i = 0; i < kPairs; ++i) {
      const Words seen = *reinterpret_cast<const Pair*>(cpl + 2 * i);
      const Words rest = seen ^ good;
      good += kNext;
      wrong |= rest;
      most = most > seen ? most : seen;
      const Words length = decode(seen, rest, i);
      sum += length;
      longest = longest > length ? longest : length;
    }
    constexpr Words kWrong = {0, Place::map_entry.mask() | kPhaseBit, ~0u, kPhaseBit | kCodeMask,
                              0, Place::map_entry.mask() | kPhaseBit, ~0u, kPhaseBit | kCodeMask};
    constexpr Words kLongest = {0, 0, regs::kMessageBytesMax, 0, 0, 0, regs::kMessageBytesMax, 0};
    const Words unwritten = reinterpret_cast<Words>(most == kUnwritten);
    if (any_of((wrong & kWrong) | unwritten | reinterpret_cast<Words>(longest > kLongest)) != 0) {
      return false;
    }
    for (uint32_t i = 0; i < kTogether; i += 2) {
      unwrite_pair(cpl + i, flip);
    }
    bytes += sum[2] + sum[6];
    arrival = out[kTogether - 1].arrival;
    pass(kTogether);
    return true;
  }
  /// Takes the next completion if it is there and plain.
  [[gnu::always_inline]] void take_one() {
    if (base::kThreadSanitizer && !is_there(cpl, flip)) {
      return;
    }
    const regs::SharedShortCpl seen = load_completion(cpl);
    const uint32_t length_bytes = Place::length.get(seen.place);
    if (((seen.status ^ flip) & (kPhaseBit | kCodeMask)) != 0 || seen.index != index ||
        !is_written<0>(seen) || Place::map_entry.get(seen.place) != map_entry ||
        length_bytes > regs::kMessageBytesMax) {
      return;
    }
    ShortReap::fill(seen, Status::kOk, *cookies, out);
    arrival = ShortReap::complete(own_id, arrival, out);
    unwrite(cpl, flip);
    bytes += length_bytes;
    pass(1);
  }
  void pass(uint32_t count) {
    cpl += count;
    cookies += count;
    out += count;
    index += count;
  }
  /// Writes messages 2 * i and 2 * i + 1. @param rest the words without what was expected: no
  /// index, no phase. @return their lengths in words 2 and 6.
  [[gnu::always_inline]] Words decode(const Words& seen, const Words& rest, size_t i) const {
    // Second half of a message: arrival, time, length with mailbox and letter, segments and status.
    const Words from = __builtin_shufflevector(rest, rest, 3, 3, 1, 1, 7, 7, 5, 5);
    constexpr Words kLength = {0, 0, 0x1FFF, 0, 0, 0, 0x1FFF, 0};
    constexpr Words kRight = {0, 0, 1, 13, 0, 0, 1, 13};
    constexpr Words kMboxSegments = {0, 0, 0x3F0000, 15, 0, 0, 0x3F0000, 15};
    constexpr Words kArrivalLetter = {~0u, 0, 0x3000000, 0, ~0u, 0, 0x3000000, 0};
    const Words length = from & kLength;
    const Words fields =
        length | ((from >> kRight) & kMboxSegments) | ((from + from) & kArrivalLetter);
    // The arrival number is the one nearest to `arrival` that has these low bits.
    constexpr uint32_t kUp = 32 - regs::shared_short_cpl::Status::arrival.width;
    constexpr Signed kDown = {kUp, 0, 0, 0, kUp, 0, 0, 0};
    const uint32_t near = arrival << kUp;
    const Words base = {arrival, 0, 0, 1, arrival, 0, 0, 1};
    const Words ups = {near, 0, 0, 0, near, 0, 0, 0};
    const Words second =
        reinterpret_cast<Words>(reinterpret_cast<Signed>(fields - ups) >> kDown) + base;
    // First half: cookie, source, own destID.
    Words cookie;
    spread(cookies + 2 * i, &cookie);
    const Words own = {own_id, own_id, own_id, own_id, own_id, own_id, own_id, own_id};
    const Words source_own = __builtin_shufflevector(seen, own, 0, 0, 0, 8, 4, 4, 4, 8);
    const Words first = __builtin_shufflevector(cookie, source_own, 0, 1, 10, 11, 4, 5, 14, 15);
    Pair* const to = reinterpret_cast<Pair*>(out + 2 * i);  // auto would lose its alignment
    to[0] = __builtin_shufflevector(first, second, 0, 1, 2, 3, 8, 9, 10, 11);
    to[1] = __builtin_shufflevector(first, second, 4, 5, 6, 7, 12, 13, 14, 15);
    return length;
  }
};

/// Decodes plain completions of the long format: a vector has all words of one.
struct LongRun {
  static constexpr uint32_t kTogether = 4;
  static_assert(sizeof(Pair) == sizeof(regs::SharedCpl) && offsetof(regs::SharedCpl, length) == 8 &&
                offsetof(regs::SharedCpl, segments) == 10 &&
                offsetof(regs::SharedCpl, place) == 11 && offsetof(regs::SharedCpl, index) == 12 &&
                LongPlace::mbox.width == 6);

  regs::SharedCpl* cpl;
  const uint64_t* cookies;
  RxMessage* out;
  uint32_t index;  // that is expected first
  uint32_t flip;   // of the last words
  uint64_t bytes = 0;

  /// Takes plain completions, up to `n`, which do not wrap, in groups.
  [[gnu::always_inline]] void take_all(uint32_t n) {
    for (; n >= kTogether && take(); n -= kTogether) {
    }
  }
  /// Takes kTogether completions if they are there and all plain: in the order of the buffers, kOk.
  /// Writes `out` in any case. @return false: took none.
  [[nodiscard, gnu::always_inline]] bool take() {
    if (!all_there<kTogether>(cpl, flip)) {
      return false;
    }
    Words good = {0, 0, 0, index, 0, 0, 0, flip};
    constexpr Words kNext = {0, 0, 0, 1, 0, 0, 0, 0};
    Words wrong = {};
    Words longest = {};
    Words most = {};  // all ones in a word that the card has not written
    Words sum = {};
#pragma GCC unroll 4
    for (size_t i = 0; i < kTogether; ++i) {
      const Words seen = *reinterpret_cast<const Pair*>(cpl + i);
      wrong |= seen ^ good;
      good += kNext;
      most = most > seen ? most : seen;
      // A message: cookie, source, own destID, arrival, time, length with mailbox and letter,
      // segments and status.
      const Words from = __builtin_shufflevector(seen, seen, 0, 0, 0, 1, 4, 5, 2, 2);
      constexpr Words kLength = {0, 0, 0, 0, 0, 0, 0xFFFF, 0};
      constexpr Words kAsIs = {0, 0, ~0u, ~0u, ~0u, ~0u, 0xFFFF, 0};
      constexpr Words kRight = {0, 0, 0, 0, 0, 0, 8, 16};
      constexpr Words kMboxSegments = {0, 0, 0, 0, 0, 0, 0x3F0000, 0xFF};
      constexpr Words kLetter = {0, 0, 0, 0, 0, 0, 0x3000000, 0};
      const Words length = from & kLength;
      sum += length;
      longest = longest > length ? longest : length;
      const Words fields =
          (from & kAsIs) | ((from >> kRight) & kMboxSegments) | ((from >> 6) & kLetter);
      using Wide [[gnu::vector_size(32)]] = uint64_t;
      const auto cookie = reinterpret_cast<Words>(Wide{cookies[i]});
      *reinterpret_cast<Pair*>(out + i) = cookie | fields;
    }
    constexpr Words kWrong = {0, 0, 0, ~0u, 0, 0, 0, kPhaseBit | kCodeMask};
    constexpr Words kLongest = {0, 0, 0, 0, 0, 0, regs::kMessageBytesMax, 0};
    const Words unwritten = reinterpret_cast<Words>(most == kUnwritten);
    if (any_of((wrong & kWrong) | unwritten | reinterpret_cast<Words>(longest > kLongest)) != 0) {
      return false;
    }
    for (uint32_t i = 0; i < kTogether; ++i) {
      unwrite(cpl + i, flip);
    }
    bytes += sum[6];
    cpl += kTogether;
    cookies += kTogether;
    out += kTogether;
    index += kTogether;
    return true;
  }
};

// Fills one entry and its cookie. If a bit in `addrs` is wrong, they are not used.
[[gnu::always_inline]] inline void fill(const RxBuffer& buffer, regs::SharedDesc* entry,
                                        uint64_t* cookie, uint64_t* addrs) {
  const uint64_t iova = buffer.iova;
  const uint64_t whole_cookie = buffer.cookie;
  *addrs |= iova;
  keep_in_register(*addrs);
  entry->addr = iova;
  *cookie = whole_cookie;
}

}  // namespace

int SharedRxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                          SharedPtr<SharedRxQueue>* out) {
  return make_queue(bus, out, [&](SharedRxQueue& queue) {
    queue.addr_misaligned_ = caps.shared_addr_align - 1;
    const auto start = [&]<class Cpl>(uint32_t format) {
      const int error = queue.PostingQueue::start<Cpl>(bus, caps, config, &queue.entries_, format);
      queue.tail_word_ = error == 0 ? queue.bar_.word_to_write(queue.tail_offset_) : nullptr;
      return error;
    };
    // A virtual function cannot read the receive map, which tells the own destIDs.
    queue.short_ = caps.short_receive && !config.times && !caps.is_vf;
    if (!queue.short_) {
      return start.operator()<regs::SharedCpl>(0);
    }
    Mmio bar = bus.bar();
    for (uint32_t i = 0; i < regs::kRxMapEntries; ++i) {
      queue.own_ids_[i] = bar.read32(regs::rx_map::dest_id(i));
    }
    return start.operator()<regs::SharedShortCpl>(1);
  });
}

uint32_t SharedRxQueue::post_run(const RxBuffer* buffers, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::SharedDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint64_t misaligned = addr_misaligned_;
  size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    uint64_t addrs = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) {
      fill(buffers[k + i], &entries[k + i], &cookies[k + i], &addrs);
    }
    if ((addrs & misaligned) != 0) [[unlikely]] {
      break;  // the rest one by one
    }
  }
  for (; k < n; ++k) {
    uint64_t addr = 0;
    fill(buffers[k], &entries[k], &cookies[k], &addr);
    if ((addr & misaligned) != 0) [[unlikely]] {
      break;
    }
  }
  if (k < n) [[unlikely]] {
    refuse(Reject::kAlignment);
  }
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

/// Not inlined, so that posting one buffer saves no registers.
[[gnu::noinline]] uint16_t SharedRxQueue::post_list(const RxBuffer* buffers, uint16_t n) {
  const uint16_t done = post_runs(
      buffers, n, [this](const auto* first, size_t count) { return post_run(first, count); });
  end_posts();
  return done;
}

/// Posts a single buffer, and lets those that follow take the short path.
[[gnu::noinline]] uint16_t SharedRxQueue::post_alone(const RxBuffer* buffer) {
  const uint16_t done = post_list(buffer, 1);
  const bool can_post = tail_word_ != nullptr && last_reject_ == Reject::kNone;
  post_end_ = window_.head() + (can_post ? window_.room() : 0);
  return done;
}

/// Takes the next message if it is there and plain, with a short completion.
[[gnu::always_inline]] inline bool SharedRxQueue::take_one(RxMessage* out) {
  if (!short_ || (base::kThreadSanitizer && !arrived())) {
    return false;
  }
  auto* const cpl = cursor_.at<regs::SharedShortCpl>();
  const Halves seen(cpl);
  const uint32_t index = window_.oldest();
  const uint32_t entry = map_entry_;
  if (!seen.is_of(uint64_t{cursor_.flip()} << 32 | index) || !seen.is_plain(entry) ||
      index == kUnwritten || window_.used() == 0 || window_.marked() != 0) {
    return false;
  }
  const uint32_t slot = index & window_.mask();
  const uint32_t arrival = seen.arrival_after(last_arrival());
  set_last_arrival(arrival);
  const uint64_t source_own = seen.source() | uint64_t{own_ids_[entry]} << 32;
  const uint64_t arrival_time = arrival;
  const uint64_t shape = seen.shape();
  out->cookie = window_.cookies()[slot];
  std::memcpy(&out->source, &source_own, sizeof source_own);
  std::memcpy(&out->arrival, &arrival_time, sizeof arrival_time);
  std::memcpy(&out->length_bytes, &shape, sizeof shape);
  unwrite(cpl, cursor_.flip());
  pass_plain(1, seen.length_bytes());
  renew_singles(seen);
  return true;
}

/// Says for how many messages bursts of one may take their short path, and how the next one looks
/// if it is like the last one.
inline void SharedRxQueue::renew_singles(const Halves& last) {
  constexpr auto kArrival = regs::shared_short_cpl::Status::arrival;
  const uint32_t index = window_.oldest();
  const uint32_t low = static_cast<uint32_t>(next_arrival_) & kArrival.max();
  // Up to where a ring wraps, or the arrival number in a completion does.
  const uint32_t most =
      std::min({window_.plain_in_a_row(), cursor_.to_wrap(), kArrival.max() - low});
  next_ = reinterpret_cast<uintptr_t>(cursor_.at<regs::SharedShortCpl>());
  next_end_ = next_ + most * sizeof(regs::SharedShortCpl);
  next_message_ = {.index_status = uint64_t{cursor_.flip() | kArrival.put(low)} << 32 | index,
                   .own_id = uint64_t{own_ids_[map_entry_]} << 32,
                   .shape = last.shape(),
                   .length_bytes = last.length_bytes(),
                   .place = last.place()};
}

/// Not inlined, so that taking one message saves no registers.
[[gnu::noinline]] uint16_t SharedRxQueue::burst_alone(RxMessage* out) {
  if (!arrived()) {
    hook_();
    if (!arrived()) {
      return 0;
    }
    if (take_next(out)) {
      return 1;
    }
  }
  end_next();
  if (take_one(out)) {
    return 1;
  }
  return short_ ? burst_short(out, 1) : burst_long(out, 1);
}

/// Not inlined, so that an empty poll saves no registers.
[[gnu::noinline]] uint16_t SharedRxQueue::burst_run(RxMessage* out, uint32_t n) {
  if (!arrived()) {
    if (n == 0) {
      return 0;
    }
    hook_();
    if (!arrived()) {
      return 0;
    }
  }
  end_next();
  return short_ ? burst_short(out, n) : burst_long(out, n);
}

/// Not inlined, so that an empty poll saves no registers.
[[gnu::noinline]] uint16_t SharedRxQueue::burst_short(RxMessage* out, uint32_t n) {
  ShortRun run{.cpl = cursor_.at<regs::SharedShortCpl>(),
               .cookies = window_.cookies() + (window_.oldest() & window_.mask()),
               .out = out,
               .index = window_.oldest(),
               .flip = cursor_.flip(),
               .map_entry = map_entry_,
               .own_id = own_ids_[map_entry_],
               .arrival = last_arrival()};
  uint32_t given = take_plain(run, n);
  set_last_arrival(run.arrival);
  if (given < n && window_.used() != 0 && cursor_.ready<regs::SharedShortCpl>()) {
    given += take_any(out + given, n - given);
  }
  return static_cast<uint16_t>(given);
}

[[gnu::noinline]] uint16_t SharedRxQueue::burst_long(RxMessage* out, uint32_t n) {
  LongRun run{.cpl = cursor_.at<regs::SharedCpl>(),
              .cookies = window_.cookies() + (window_.oldest() & window_.mask()),
              .out = out,
              .index = window_.oldest(),
              .flip = cursor_.flip()};
  const uint32_t given = take_plain(run, n);
  return static_cast<uint16_t>(given + reap_any<SharedReap>(out + given, n - given));
}

/// Takes plain messages until either ring wraps. @return how many.
template <class Run>
inline uint32_t SharedRxQueue::take_plain(Run& run, uint32_t n) {
  const uint32_t first = run.index;
  run.take_all(std::min({n, cursor_.to_wrap(), window_.plain_in_a_row()}));
  const uint32_t done = run.index - first;
  pass_plain(done, run.bytes);
  return done;
}

/// Takes any messages one by one. @return how many.
uint32_t SharedRxQueue::take_any(RxMessage* out, uint32_t n) {
  const uint32_t given = reap_any<ShortReap>(out, n);
  for (uint32_t i = 0; i < given; ++i) {
    map_entry_ = out[i].dest_id;
    const uint32_t arrival = ShortReap::complete(own_ids_[map_entry_], last_arrival(), &out[i]);
    if (out[i].status != Status::kFlushed) {
      set_last_arrival(arrival);
    }
  }
  return given;
}

}  // namespace rio::pmd
