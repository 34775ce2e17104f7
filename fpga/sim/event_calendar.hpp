/// @file
/// The events of a simulation in order of time: a calendar of three wheels, and a tier beyond them.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <type_traits>

#include "fpga/sim/chunk_pool.hpp"

namespace rio::sim {

/// Gives events back in order of time, and those of one time in the order of their pushes, so that
/// a simulation repeats bit for bit. One thread.
///
/// The first wheel has a bucket a nanosecond, each bucket of the second wheel stands for one turn
/// of the first, and so on; the far tier has a bucket for each turn of the last wheel. The highest
/// bit in which an event's time differs from now() decides its wheel. So at any moment all events
/// of one time are in one bucket, in the order of their pushes. When time enters a bucket's span,
/// its events are dealt to finer buckets front to back; no bucket is ever sorted.
template <class Event>
class EventCalendar {
  static_assert(std::is_trivially_copyable_v<Event>);

 public:
  EventCalendar() { set_now(0); }
  EventCalendar(const EventCalendar&) = delete;
  EventCalendar& operator=(const EventCalendar&) = delete;

  /// A time before which no event is left: that of the last event taken, or, after a pop() that
  /// found nothing, one up to its limit.
  [[nodiscard]] uint64_t now() const { return now_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] bool is_empty() const { return size_ == 0; }
  /// Memory reserved for events, in bytes.
  [[nodiscard]] size_t bytes() const { return pool_.bytes(); }

  /// Add an event. @param time_ns at least now().
  /// @throws std::bad_alloc
  void push(uint64_t time_ns, const Event& event) {
    assert(time_ns >= now_);
    ++size_;
    place(time_ns, event);
  }

  /// Take events of the earliest time, which is now() afterwards. If `out` is too short, the next
  /// call takes the rest. @param limit_ns events after it stay. @param out at least one place.
  /// @return how many; 0: there is none up to the limit.
  [[nodiscard]] size_t pop(uint64_t limit_ns, std::span<Event> out) {
    if (read_ == current_->end && !enter_next_bucket(limit_ns)) {
      return 0;
    }
    if (now_ > limit_ns) {
      return 0;
    }
    size_t taken = 0;
    while (taken < out.size() && read_ != current_->end) {
      out[taken++] = read_->event;
      ++read_;
      if (is_boundary(read_)) {
        leave_read_chunk();
      }
    }
    size_ -= taken;
    return taken;
  }

 private:
  /// An event with the low bits of its time; its bucket implies the others.
  struct Entry {
    uint32_t low_ns;
    Event event;
  };
  static constexpr size_t kChunkBytes = ChunkPool::kChunkBytes;
  static constexpr size_t kPerChunk = (kChunkBytes - sizeof(Chunk)) / sizeof(Entry);
  /// Entries end where their chunk ends, so that a full chunk is known by the address alone.
  static constexpr size_t kFirstEntry = kChunkBytes - kPerChunk * sizeof(Entry);
  static_assert(kPerChunk >= 4 && kFirstEntry % alignof(Entry) == 0);

  /// Entries in the order of their pushes. `end` is the place of the next entry; if it is a chunk's
  /// boundary, or null, the next entry needs a new chunk.
  struct Bucket {
    Entry* end = nullptr;
    Chunk* first = nullptr;

    /// The chunk of the last entry; there must be one.
    [[nodiscard]] Chunk* last() const {
      const uintptr_t within = reinterpret_cast<uintptr_t>(end) - 1;
      return reinterpret_cast<Chunk*>(within / kChunkBytes * kChunkBytes);
    }
  };

  template <unsigned kBits, unsigned kLowBits>
  struct Wheel {
    static constexpr unsigned kShift = kLowBits;
    static constexpr unsigned kTop = kBits + kLowBits;
    static constexpr uint32_t kBuckets = 1u << kBits;

    [[nodiscard]] static uint32_t index(uint64_t time_ns) {
      return static_cast<uint32_t>(time_ns >> kShift) & (kBuckets - 1);
    }
    /// @return the first bucket with entries from `from` on; kBuckets: there is none.
    [[nodiscard]] uint32_t next(uint32_t from) const {
      uint64_t mask = ~uint64_t{0} << (from % 64);
      for (uint32_t word = from / 64; word < used.size(); ++word, mask = ~uint64_t{0}) {
        if (const uint64_t bits = used[word] & mask; bits != 0) {
          return word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
        }
      }
      return kBuckets;
    }
    void set_used(uint32_t at) { used[at / 64] |= uint64_t{1} << (at % 64); }
    void set_unused(uint32_t at) { used[at / 64] &= ~(uint64_t{1} << (at % 64)); }

    std::array<Bucket, kBuckets> buckets{};
    std::array<uint64_t, kBuckets / 64> used{};
  };
  using Near = Wheel<12, 0>;
  using Middle = Wheel<10, Near::kTop>;
  using Late = Wheel<10, Middle::kTop>;
  static_assert(Late::kTop == 32, "an entry has 32 bits of its time");

  [[nodiscard]] static bool is_boundary(const Entry* at) {
    return reinterpret_cast<uintptr_t>(at) % kChunkBytes == 0;
  }
  [[nodiscard]] static Entry* first_entry(Chunk* chunk) {
    return reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(chunk) + kFirstEntry);
  }

  void place(uint64_t time_ns, const Event& event) {
    const uint64_t differs = time_ns ^ now_;
    if (differs < uint64_t{1} << Near::kTop) [[likely]] {
      append(near_, time_ns, event);
    } else if (differs < uint64_t{1} << Middle::kTop) {
      append(middle_, time_ns, event);
    } else if (differs < uint64_t{1} << Late::kTop) {
      append(late_, time_ns, event);
    } else {
      append(far_[static_cast<uint32_t>(time_ns >> Late::kTop)], time_ns, event);
    }
  }

  template <class AnyWheel>
  void append(AnyWheel& wheel, uint64_t time_ns, const Event& event) {
    const uint32_t at = AnyWheel::index(time_ns);
    if (append(wheel.buckets[at], time_ns, event)) {
      wheel.set_used(at);
    }
  }

  /// @return whether the bucket was empty.
  bool append(Bucket& bucket, uint64_t time_ns, const Event& event) {
    const bool was_empty = bucket.end == nullptr;
    if (is_boundary(bucket.end)) {
      add_chunk(bucket);
    }
    *bucket.end++ = {static_cast<uint32_t>(time_ns), event};
    return was_empty;
  }

  void add_chunk(Bucket& bucket) {
    Chunk* const chunk = pool_.take();
    chunk->next = nullptr;
    (bucket.first == nullptr ? bucket.first : bucket.last()->next) = chunk;
    bucket.end = first_entry(chunk);
    if (bucket.first == chunk && &bucket == current_) {
      read_ = bucket.end;
    }
  }

  /// Give back the chunk that read_ has just left: all its entries were read.
  void leave_read_chunk() {
    Chunk* const done = current_->first;
    if (done->next == nullptr) {
      *current_ = {};
      read_ = nullptr;
    } else {
      current_->first = done->next;
      read_ = first_entry(current_->first);
      __builtin_prefetch(current_->first->next);
    }
    pool_.give(done);
  }

  /// Move from the current bucket, which is used up, to the next one that has entries. @return
  /// false: the next event is after the limit, or there is none.
  [[nodiscard]] bool enter_next_bucket(uint64_t limit_ns) {
    if (current_->first != nullptr) {
      pool_.give(current_->first);
      *current_ = {};
      read_ = nullptr;
    }
    near_.set_unused(Near::index(now_));
    if (size_ == 0) {
      return false;
    }
    for (;;) {
      const uint32_t at = near_.next(Near::index(now_));
      if (at < Near::kBuckets) {
        return enter(start_of<Near>(at), limit_ns);
      }
      if (!deal_next_turn(limit_ns)) {
        return false;
      }
    }
  }

  [[nodiscard]] bool enter(uint64_t time_ns, uint64_t limit_ns) {
    if (time_ns > limit_ns) {
      return false;
    }
    set_now(time_ns);
    read_ = first_entry(current_->first);
    return true;
  }

  void set_now(uint64_t time_ns) {
    now_ = time_ns;
    current_ = &near_.buckets[Near::index(time_ns)];
  }

  /// The time at which bucket `at` of a wheel starts, in the wheel's present turn.
  template <class AnyWheel>
  [[nodiscard]] uint64_t start_of(uint32_t at) const {
    return now_ >> AnyWheel::kTop << AnyWheel::kTop | uint64_t{at} << AnyWheel::kShift;
  }

  /// Deal the next bucket of the coarser wheels, when the first wheel is empty. @return false: it
  /// begins after the limit.
  [[nodiscard]] bool deal_next_turn(uint64_t limit_ns) {
    if (const uint32_t at = middle_.next(Middle::index(now_)); at < Middle::kBuckets) {
      return deal(middle_, at, limit_ns);
    }
    if (const uint32_t at = late_.next(Late::index(now_)); at < Late::kBuckets) {
      return deal(late_, at, limit_ns);
    }
    const auto first = far_.begin();
    const uint64_t start_ns = uint64_t{first->first} << Late::kTop;
    if (start_ns > limit_ns) {
      return false;
    }
    const Bucket bucket = first->second;
    far_.erase(first);
    deal(bucket, start_ns);
    return true;
  }

  template <class AnyWheel>
  [[nodiscard]] bool deal(AnyWheel& wheel, uint32_t at, uint64_t limit_ns) {
    const uint64_t start_ns = start_of<AnyWheel>(at);
    if (start_ns > limit_ns) {
      return false;
    }
    const Bucket bucket = wheel.buckets[at];
    wheel.buckets[at] = {};
    wheel.set_unused(at);
    deal(bucket, start_ns);
    return true;
  }

  /// Put the entries of a bucket whose span time enters into finer buckets, which are empty.
  void deal(const Bucket& bucket, uint64_t start_ns) {
    set_now(start_ns);
    read_ = nullptr;
    const uint64_t high = start_ns >> Late::kTop << Late::kTop;
    for (Chunk* chunk = bucket.first; chunk != nullptr;) {
      const Entry* const end = chunk->next == nullptr ? bucket.end : first_entry(chunk) + kPerChunk;
      for (const Entry* entry = first_entry(chunk); entry != end; ++entry) {
        place(high | entry->low_ns, entry->event);
      }
      Chunk* const next = chunk->next;
      pool_.give(chunk);
      chunk = next;
    }
  }

  uint64_t now_ = 0;
  uint64_t size_ = 0;
  Bucket* current_ = nullptr;    ///< the first wheel's bucket of now_
  const Entry* read_ = nullptr;  ///< next entry of *current_; null: it has no chunk
  ChunkPool pool_;
  Near near_;
  Middle middle_;
  Late late_;
  std::map<uint32_t, Bucket> far_;  ///< by the upper 32 bits of the time
};

}  // namespace rio::sim
