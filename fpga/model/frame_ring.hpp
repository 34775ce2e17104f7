/// @file
/// A byte ring of frames between one writer and one reader.
///
/// A frame announces itself: its `bytes` is written last, with a tag of the lap, so a short frame
/// moves one cache line instead of two. A waiting reader polls that word, left over from the last
/// lap, in its own cache. If it could pass for a new frame, the writer zeroes it.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/frame.hpp"

namespace rio::model {

/// The words that the reader writes for the writer. Zeroed memory is an empty ring.
struct FrameRingShared {
  alignas(64) std::atomic<uint32_t> head{0};
  /// Not 0: the reader sleeps, and must be woken when a frame arrives.
  alignas(64) std::atomic<uint32_t> asleep{0};
};

/// Wakes a sleeping reader. Used by the thread that steps the writer's card.
class Bell {
 public:
  virtual ~Bell() = default;
  virtual void ring() = 0;
};

/// Prefetch a cache line for writing. __builtin_prefetch prefetches only for reading unless a
/// compiler option is set.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Computes the tag of a ring position.
class LapTag {
 public:
  /// @param bytes size of the ring: power of two, at most kFrameRingBytesMax; or 0.
  explicit LapTag(uint32_t bytes)
      : laps_(~(bytes - 1)),
        shift_(bytes == 0 ? 0 : kTagShift - static_cast<uint32_t>(std::countr_zero(bytes))) {}
  /// @param position free-running.
  [[nodiscard]] uint32_t at(uint32_t position) const { return (position & laps_) << shift_; }

 private:
  uint32_t laps_;
  uint32_t shift_;
};

/// A Frame header as words, with `bytes` 0.
struct FrameHead {
  uint64_t words[4];
};
/// @param frame its `bytes` does not matter.
[[nodiscard]] inline FrameHead head_of(const Frame& frame) {
  FrameHead head;
  std::memcpy(&head, &frame, sizeof(head));
  head.words[0] &= ~uint64_t{UINT32_MAX};
  return head;
}

/// The writer's end. One thread at a time. The memory must be zeroed before the first use, and
/// aligned to 64.
class FrameWriter {
 public:
  /// @param shared may be in memory of another process: it is only read, and its values are
  /// checked. @param bytes power of two, at least 8 KiB, so that the longest message fits, and at
  /// most kFrameRingBytesMax; or 0: a ring without memory, which is always full. @param bell wakes
  /// the reader; null: the reader never sleeps.
  FrameWriter(const FrameRingShared* shared, uint8_t* memory, uint32_t bytes, Bell* bell = nullptr)
      : memory_(memory), mask_(bytes - 1), tag_(bytes), shared_(shared), bell_(bell) {
    assert(bytes <= kFrameRingBytesMax);
  }

  /// Reserve contiguous room for a frame of `bytes`, a multiple of 32. The caller fills everything
  /// except Frame::bytes, then calls commit(), or drops the frame. @return null: full.
  [[nodiscard]] Frame* reserve(uint32_t bytes) {
    if (!fits(bytes)) {
      return nullptr;
    }
    const uint32_t to_end = mask_ + 1 - (tail_ & mask_);
    if (bytes > to_end) [[unlikely]] {
      Frame* skip = frame_at(tail_);
      skip->type = FrameType::kSkip;
      commit(skip, to_end);
    }
    return frame_at(tail_);
  }

  /// Add the reserved frame to the ring. The reader sees it after publish().
  void commit(Frame* frame, uint32_t bytes) {
    if (first_ == nullptr) {
      hold_back(frame, bytes);
    } else {
      frame->bytes = bytes | tag_.at(tail_);
    }
    tail_ += bytes;
  }

  /// Write a frame where reserve() has found room, and commit() it. The first line is written last:
  /// a polling reader takes it away as soon as it changes. @param length of the payload.
  void put_reserved(const FrameHead& head, const uint8_t* payload, uint32_t length) {
    constexpr uint32_t kInFirstLine = kLineBytes - sizeof(Frame);
    Frame* const frame = frame_at(tail_);
    if (length > kInFirstLine) {
      std::memcpy(frame->payload() + kInFirstLine, payload + kInFirstLine, length - kInFirstLine);
    }
    if (length != 0) {
      std::memcpy(frame->payload(), payload, length < kInFirstLine ? length : kInFirstLine);
    }
    std::memcpy(reinterpret_cast<uint8_t*>(frame) + sizeof(frame->bytes),
                reinterpret_cast<const uint8_t*>(&head) + sizeof(frame->bytes),
                sizeof(Frame) - sizeof(frame->bytes));
    commit(frame, frame_bytes(length));
  }
  /// Write and publish a frame where reserve() has found room; a short one like put_short().
  void send_reserved(const FrameHead& head, const uint8_t* payload, uint32_t length) {
    const uint32_t bytes = frame_bytes(length);
    if (length <= kShortBytes && has_short_room(bytes)) {
      const auto fill = [&](uint8_t* at) {
        if (length != 0) {
          std::memcpy(at, payload, length);
        }
      };
      if (put_short(bytes, head, fill)) {
        wake();
      }
      return;
    }
    put_reserved(head, payload, length);
    publish();
  }

  /// Contiguous free bytes at the tail.
  struct Window {
    uint8_t* bytes;
    uint32_t room;     ///< contiguous
    uint32_t tag;      ///< to be added to `bytes` of every frame but the first
    bool hides_first;  ///< the first frame's `bytes` must not be written
  };
  /// Room for several frames. Checks what the reader has released if there is less than `wanted`.
  [[nodiscard]] Window window(uint32_t wanted) {
    if (room() < wanted + kEndBytes) {
      poll_head();
    }
    const uint32_t to_end = mask_ + 1 - (tail_ & mask_);
    const uint32_t free = room() < kEndBytes ? 0 : room() - kEndBytes;
    return {memory_ + (tail_ & mask_), free < to_end ? free : to_end, tag_.at(tail_),
            first_ == nullptr};
  }
  /// Add the frames that were written to a window. @param first_bytes `bytes` of the first one.
  void commit_run(const Window& window, uint32_t first_bytes, uint32_t bytes) {
    if (first_ == nullptr && bytes != 0) {
      hold_back(reinterpret_cast<Frame*>(window.bytes), first_bytes);
    }
    tail_ += bytes;
  }

  /// Whether put_short() may be called. Publishes committed frames. @param bytes frame_bytes() of a
  /// payload of at most 256.
  [[nodiscard]] bool has_short_room(uint32_t bytes) {
    return has_short_room_at_hand(bytes) || update_short_room(bytes);
  }
  /// Hot. Whether put_short() may be called, as far as known without reading shared memory. Has no
  /// side effects.
  [[nodiscard]] bool has_short_room_at_hand(uint32_t bytes) const {
    return static_cast<int32_t>(short_end_ - tail_ - (bytes + kEndBytes)) >= 0;
  }
  /// Hot. Write and publish a short frame. @param fill writes the payload. @return whether the
  /// reader sleeps: then call wake().
  template <class Fill>
  [[nodiscard]] [[gnu::always_inline]] bool put_short(uint32_t bytes, const FrameHead& head,
                                                      Fill fill) {
    // Locals: after each store through a byte pointer, the compiler would reload members.
    uint8_t* const memory = memory_;
    const uint32_t mask = mask_;
    const FrameRingShared* const shared = shared_;
    const uint32_t tag = short_tag_;
    const uint32_t tail = tail_;
    const uint32_t end = tail + bytes;
    tail_ = end;
    // The reader's cache still has the lines of the next frames. Prefetch one so far ahead that the
    // reader does not poll it.
    prefetch_to_write(memory + ((end + 4 * kLineBytes) & mask));
    uint8_t* const at = memory + (tail & mask);
    fill(at + sizeof(Frame));
    clear_the_end(memory + (end & mask), tag);
    // Write the header last and in one go: otherwise a polling reader would take the cache line
    // away in between.
    auto* const words = reinterpret_cast<uint64_t*>(at);
    __atomic_store_n(words + 3, head.words[3], __ATOMIC_RELAXED);
    __atomic_store_n(words + 2, head.words[2], __ATOMIC_RELAXED);
    __atomic_store_n(words + 1, head.words[1], __ATOMIC_RELAXED);
    // release: as in publish().
    __atomic_store_n(words, head.words[0] | bytes | tag, __ATOMIC_RELEASE);
    return shared->asleep.load(std::memory_order_relaxed) != 0;
  }
  /// Send a short frame with a copy of a payload, and wake the reader if needed. @param payload
  /// readable up to a multiple of 16 bytes. @param length of the payload, 1 to 256; padded with
  /// zeros to a multiple of 8. @return false: no room.
  [[nodiscard]] bool send_short(const FrameHead& head, const uint8_t* payload, uint32_t length) {
    const uint32_t bytes = frame_bytes(length);
    if (!has_short_room(bytes)) [[unlikely]] {
      return false;
    }
    if (put_short(bytes, head, [&](uint8_t* at) { copy_first_last(at, payload, length); }))
        [[unlikely]] {
      wake();
    }
    return true;
  }
  /// Wake the reader if it sleeps. No fence is needed after the frame: a reader that goes to sleep
  /// issues a membarrier between setting its flag and its last check.
  void wake() {
    if (shared_->asleep.load(std::memory_order_relaxed) != 0 && bell_ != nullptr) [[unlikely]] {
      bell_->ring();
    }
  }

  /// Whether reserve() of `bytes` would succeed.
  [[nodiscard]] bool fits(uint32_t bytes) {
    const uint32_t to_end = mask_ + 1 - (tail_ & mask_);
    const uint32_t need = kEndBytes + (bytes <= to_end ? bytes : to_end + bytes);
    if (room() < need) [[unlikely]] {
      poll_head();
    }
    return room() >= need;
  }

  /// Prefetch the tail, because a frame will be sent soon.
  void prepare() const { prefetch_to_write(memory_ + (tail_ & mask_)); }

  void publish() {
    if (first_ == nullptr) {
      return;
    }
    clear_the_end(memory_ + (tail_ & mask_), tag_.at(tail_));
    // release: the frames, and the cleared words behind them, visible before the first length;
    // pairs with FrameReader::peek and load_frame_word.
    __atomic_store_n(&first_->bytes, first_bytes_, __ATOMIC_RELEASE);
    first_ = nullptr;
    prefetch_to_write(frame_at(tail_ + 64));
    wake();
  }

  /// Position of the next frame. Wraps.
  [[nodiscard]] uint32_t tail() const { return tail_; }
  /// Whether the reader has released everything before `position`, an earlier tail().
  [[nodiscard]] bool passed(uint32_t position) {
    poll_head();
    return static_cast<int32_t>(head_ - position) >= 0;
  }
  /// Whether later frames have been written where the one at `position` was. @param position an
  /// earlier tail(), of the last 2^32 bytes.
  [[nodiscard]] bool is_old(uint32_t position) const { return tail_ - position > mask_ + 1; }
  /// Revoke the frame at `position`, because the bytes that it points to will go. If the reader has
  /// not released it, is_still() will fail from now on.
  void revoke(uint32_t position) {
    if (memory_ != nullptr && !is_old(position) &&
        !passed(position + static_cast<uint32_t>(sizeof(Frame)))) {
      __atomic_store_n(reinterpret_cast<uint8_t*>(&frame_at(position)->type),
                       static_cast<uint8_t>(FrameType::kRevoked), __ATOMIC_RELAXED);
      // The revocation is visible before the bytes change; pairs with the acquire in is_pull().
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  /// Whether the reader has released bytes that were never written: nothing is sent to it any more.
  [[nodiscard]] bool foul() const { return foul_; }

 private:
  static constexpr uint32_t kLineBytes = 64;
  static constexpr uint32_t kShortBytes = 256;  // payload of a short frame
  static constexpr uint32_t kEndBytes = 32;     // bytes behind the last frame that are cleared

  /// Clear bytes of an earlier lap that could be taken for a frame. @param tag tag of the position.
  [[gnu::always_inline]] static void clear_the_end(uint8_t* end, uint32_t tag) {
    if (is_frame(load32(end) ^ tag)) [[unlikely]] {
      store32(end, 0);
    }
  }

  [[nodiscard]] Frame* frame_at(uint32_t position) {
    return reinterpret_cast<Frame*>(memory_ + (position & mask_));
  }
  [[nodiscard]] uint32_t room() const { return mask_ + 1 - (tail_ - head_); }
  void poll_head() {
    // acquire: the reader has read the bytes; pairs with FrameReader::release.
    const uint32_t head = shared_->head.load(std::memory_order_acquire);
    if (tail_ - head > tail_ - head_) [[unlikely]] {
      foul_ = true;
      return;
    }
    head_ = head;
  }
  /// Remember the first unpublished frame, whose `bytes` publish() will write.
  void hold_back(Frame* first, uint32_t bytes) {
    first_ = first;
    first_bytes_ = bytes | tag_.at(tail_);
    short_end_ = tail_;  // forces has_short_room() to take its slow path, which publishes
  }
  /// Update the room for put_short(). @return whether a frame of `bytes` fits.
  [[gnu::noinline]] [[nodiscard]] bool update_short_room(uint32_t bytes) {
    publish();
    poll_head();
    const uint32_t to_end = mask_ + 1 - (tail_ & mask_);
    const uint32_t room_now = room();
    short_end_ = tail_ + (room_now < to_end ? room_now : to_end);
    short_tag_ = tag_.at(tail_);
    return room_now >= bytes + kEndBytes && to_end >= bytes + kEndBytes;
  }

  uint8_t* memory_;
  uint32_t mask_;
  LapTag tag_;
  uint32_t tail_ = 0;
  uint32_t head_ = 0;         // last value read
  uint32_t short_end_ = 0;    // end of the contiguous room for short frames
  uint32_t short_tag_ = 0;    // tag of all positions before that
  Frame* first_ = nullptr;    // first unpublished frame
  uint32_t first_bytes_ = 0;  // its `bytes`, with the tag
  bool foul_ = false;
  const FrameRingShared* shared_;
  Bell* bell_;
};

/// The reader's end. One thread at a time.
class FrameReader {
 public:
  /// A frame that was popped, and whose room is not released yet.
  struct Held {
    InFrame frame;
    uint32_t position;
    uint32_t taken;  ///< for the reader: how far it has got
  };
  static constexpr uint32_t kHeldMax = 8;

  FrameReader(FrameRingShared* shared, const uint8_t* memory, uint32_t bytes)
      : memory_(memory), mask_(bytes - 1), tag_(bytes), shared_(shared) {}

  /// The next frame; null: none. The frame is valid until pop() and release(), the copy of its
  /// header until the next peek(). After an invalid length, nothing is read any more: foul().
  [[nodiscard]] const InFrame* peek() {
    const uint8_t* at = next();
    const uint64_t word = load_frame_word(at, tag());
    return is_frame(static_cast<uint32_t>(word)) ? take(at, word) : nullptr;
  }

  /// Address of the next frame, unchecked; load_frame_word() tells whether it has arrived.
  [[nodiscard]] const uint8_t* next() const { return memory_ + (head_ & mask_); }
  /// Tag of the next frame and of all later ones up to the end of the memory.
  [[nodiscard]] uint32_t tag() const { return tag_.at(head_); }

  /// Whether the writer gave an invalid length: nothing is read any more.
  [[nodiscard]] bool foul() const { return foul_; }

  /// Bytes from the next frame to the end of the memory.
  [[nodiscard]] uint32_t to_end() const { return mask_ + 1 - (head_ & mask_); }

  void pop(const InFrame* frame) { head_ += frame->bytes; }
  /// Pop several contiguous frames.
  void pop_bytes(uint32_t bytes) { head_ += bytes; }

  /// Release the room of popped frames to the writer. Only if !holds().
  void release() {
    // release: the frames were read before; pairs with FrameWriter::poll_head.
    shared_->head.store(head_, std::memory_order_release);
  }

  /// Keep the next frame in the ring although it is popped next: later frames can be read
  /// meanwhile. @return false: too many are held.
  [[nodiscard]] bool hold(const InFrame& frame) {
    if (held_.size() == kHeldMax) {
      return false;
    }
    held_.push_back({frame, head_, 0});
    holds_ = true;
    return true;
  }
  [[nodiscard]] bool holds() const { return holds_; }
  /// The frames that are held, the oldest first.
  [[nodiscard]] std::span<Held> held() { return held_; }
  /// The oldest frames are held no longer.
  void end_held(size_t count) {
    held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(count));
    holds_ = !held_.empty();
  }
  /// Release the room of popped frames up to the oldest one that is held.
  void release_unheld() {
    // release: as in release().
    shared_->head.store(holds_ ? held_.front().position : head_, std::memory_order_release);
  }

 private:
  static_assert(sizeof(Frame) == 4 * sizeof(uint64_t));

  /// Copy and check a header. @param word its first eight bytes, from load_frame_word().
  [[nodiscard]] const InFrame* take(const uint8_t* at, uint64_t word) {
    const auto bytes = static_cast<uint32_t>(word);
    const auto type = static_cast<FrameType>(word >> 32 & 0xFF);
    const bool skip = type == FrameType::kSkip;
    // A filler is never as long as the whole ring.
    if ((bytes & (kFrameAlign - 1)) != 0 || bytes > to_end() ||
        (skip && (bytes != to_end() || (head_ & mask_) == 0))) [[unlikely]] {
      foul_ = true;
      return nullptr;
    }
    if (skip) [[unlikely]] {
      head_ += bytes;
      return peek();
    }
    const auto* const from = reinterpret_cast<const uint64_t*>(at);
    const uint64_t words[] = {word, __atomic_load_n(from + 1, __ATOMIC_RELAXED),
                              __atomic_load_n(from + 2, __ATOMIC_RELAXED),
                              __atomic_load_n(from + 3, __ATOMIC_RELAXED)};
    std::memcpy(static_cast<void*>(&next_), words, sizeof(words));
    next_.at = at;
    return &next_;
  }

  const uint8_t* memory_;
  uint32_t mask_;
  LapTag tag_;
  uint32_t head_ = 0;
  FrameRingShared* shared_;
  bool foul_ = false;
  bool holds_ = false;
  InFrame next_;
  std::vector<Held> held_;
};

/// Memory and both ends of one ring.
struct RingBox {
  /// @param bytes, bell as for FrameWriter.
  explicit RingBox(uint32_t bytes, Bell* bell = nullptr)
      : memory(bytes / sizeof(Line)),
        writer(&shared, reinterpret_cast<uint8_t*>(memory.data()), bytes, bell),
        reader(&shared, reinterpret_cast<const uint8_t*>(memory.data()), bytes) {}

  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  FrameRingShared shared;
  std::vector<Line> memory;
  alignas(64) FrameWriter writer;
  alignas(64) FrameReader reader;
};

}  // namespace rio::model
