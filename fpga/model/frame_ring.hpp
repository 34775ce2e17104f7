/// @file
/// A byte ring of frames between one writer and one reader.
///
/// A frame announces itself: its `bytes` is written last, together with a tag of the lap. So a
/// short frame moves one cache line, not two. A reader that waits polls the word left by the last
/// lap, in its own cache. The writer checks that word, too: where it could pass for a new frame,
/// the writer makes it zero.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/frame.hpp"

namespace rio::model {

/// The reader's news for the writer. Zero-initialised memory is an empty ring.
struct FrameRingShared {
  alignas(64) std::atomic<uint32_t> head{0};
  /// Not 0: the reader does not look at its ring, and wants to be woken when something comes.
  alignas(64) std::atomic<uint32_t> asleep{0};
};

/// Wakes a reader that sleeps. Used by the thread that steps the writer's card.
class Bell {
 public:
  virtual ~Bell() = default;
  virtual void ring() = 0;
};

/// Have a line that will be written soon: not only to read, as __builtin_prefetch does for want of
/// an option of the compiler.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// In a ring a frame's `bytes` shares its word with the tag above it.
inline constexpr uint32_t kTagShift = 20;
inline constexpr uint32_t kFrameRingBytesMax = 1u << kTagShift;
/// Whether a word without its tag is of a frame. A word with another tag is not.
[[nodiscard]] constexpr bool is_frame(uint32_t bytes) {
  return bytes - 1 < kFrameRingBytesMax - 1;
}

/// Tags by position, for a ring.
class LapTag {
 public:
  /// @param bytes of the ring: power of two, at most kFrameRingBytesMax; or 0.
  explicit LapTag(uint32_t bytes)
      : laps_(~(bytes - 1)),
        shift_(bytes == 0 ? 0 : kTagShift - static_cast<uint32_t>(std::countr_zero(bytes))) {}
  /// @param position free-running.
  [[nodiscard]] uint32_t at(uint32_t position) const { return (position & laps_) << shift_; }

 private:
  uint32_t laps_;
  uint32_t shift_;
};

/// A Frame as words, but for its `bytes`, which is 0 in it.
struct FrameHead {
  uint64_t words[4];
};

/// Writer's end. One thread at a time. The memory is zeroed before the first use, and aligned
/// to 64.
class FrameWriter {
 public:
  /// @param shared may be another process's: nothing is written there, and what it says is checked.
  /// @param bytes power of two, at least 8 KiB, so that the longest message fits, and at most
  /// kFrameRingBytesMax; or 0: a ring without memory, which is always full.
  /// @param bell for readers that sleep; null: they do not.
  FrameWriter(const FrameRingShared* shared, uint8_t* memory, uint32_t bytes, Bell* bell = nullptr)
      : memory_(memory), mask_(bytes - 1), tag_(bytes), shared_(shared), bell_(bell) {
    assert(bytes <= kFrameRingBytesMax);
  }

  /// Room for a frame of `bytes` (a multiple of 32), contiguous. The caller fills everything but
  /// Frame::bytes, then commits it or leaves it. @return null: full.
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

  /// The frame that reserve() gave is complete; the reader sees it after publish().
  void commit(Frame* frame, uint32_t bytes) {
    if (first_ == nullptr) {
      hold_back(frame, bytes);
    } else {
      frame->bytes = bytes | tag_.at(tail_);
    }
    tail_ += bytes;
  }

  /// A run of free bytes at the tail.
  struct Window {
    uint8_t* bytes;
    uint32_t room;     ///< contiguous
    uint32_t tag;      ///< for every other frame's `bytes`
    bool hides_first;  ///< the first frame's `bytes` must stay as it is
  };
  /// For several frames in a row; looks for what the reader gave back if there is less than
  /// `wanted`.
  [[nodiscard]] Window window(uint32_t wanted) {
    if (room() < wanted + kEndBytes) {
      look_at_head();
    }
    const uint32_t to_end = mask_ + 1 - (tail_ & mask_);
    const uint32_t free = room() < kEndBytes ? 0 : room() - kEndBytes;
    return {memory_ + (tail_ & mask_), free < to_end ? free : to_end, tag_.at(tail_),
            first_ == nullptr};
  }
  /// Frames in the window are complete. @param first_bytes of the first of them.
  void commit_run(const Window& window, uint32_t first_bytes, uint32_t bytes) {
    if (first_ == nullptr && bytes != 0) {
      hold_back(reinterpret_cast<Frame*>(window.bytes), first_bytes);
    }
    tail_ += bytes;
  }

  /// Whether put_short() may be called. @param bytes of the frame, as frame_bytes() says, of at
  /// most 256 of payload. Publishes what was committed.
  [[nodiscard]] bool has_short_room(uint32_t bytes) {
    return has_short_room_at_hand(bytes) || look_for_short(bytes);
  }
  /// Hot. The same as far as it is known without a look: nothing is called, and nothing is done.
  [[nodiscard]] bool has_short_room_at_hand(uint32_t bytes) const {
    return static_cast<int32_t>(short_end_ - tail_ - (bytes + kEndBytes)) >= 0;
  }
  /// Hot. A short frame, visible at once, with all before it. @param fill writes what stands behind
  /// its header. @return whether the reader sleeps: then wake() is to be called.
  template <class Fill>
  [[nodiscard]] [[gnu::always_inline]] bool put_short(uint32_t bytes, const FrameHead& head,
                                                      Fill fill) {
    // Locals: stores through byte pointers would make the compiler load members again each time.
    uint8_t* const memory = memory_;
    const uint32_t mask = mask_;
    const FrameRingShared* const shared = shared_;
    const uint32_t tag = short_tag_;
    const uint32_t tail = tail_;
    const uint32_t end = tail + bytes;
    tail_ = end;
    // The reader has the lines of the next frames still. So far ahead it does not look for one.
    prefetch_to_write(memory + ((end + 4 * kLineBytes) & mask));
    uint8_t* const at = memory + (tail & mask);
    fill(at + sizeof(Frame));
    clear_the_end(memory + (end & mask), tag);
    // Its header is written last and in one go: done bit by bit, a reader that looks for it would
    // take the line away in between.
    auto* const words = reinterpret_cast<uint64_t*>(at);
    __atomic_store_n(words + 3, head.words[3], __ATOMIC_RELAXED);
    __atomic_store_n(words + 2, head.words[2], __ATOMIC_RELAXED);
    __atomic_store_n(words + 1, head.words[1], __ATOMIC_RELAXED);
    // release: as in publish().
    __atomic_store_n(words, head.words[0] | bytes | tag, __ATOMIC_RELEASE);
    return shared->asleep.load(std::memory_order_relaxed) != 0;
  }
  /// put_short() with a copy of the payload, and what belongs to it. @param payload may be read up
  /// to a multiple of 16 bytes. @param length of it, 1 to 256; zeros follow it to a multiple of 8.
  /// @return false: no room.
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
  /// No fence behind the frame: a reader that goes to sleep makes all processors' stores seen
  /// between its flag and its last look (membarrier).
  void wake() {
    if (shared_->asleep.load(std::memory_order_relaxed) != 0 && bell_ != nullptr) [[unlikely]] {
      bell_->ring();
    }
  }

  /// Whether reserve() would give so much.
  [[nodiscard]] bool fits(uint32_t bytes) {
    const uint32_t to_end = mask_ + 1 - (tail_ & mask_);
    const uint32_t need = kEndBytes + (bytes <= to_end ? bytes : to_end + bytes);
    if (room() < need) [[unlikely]] {
      look_at_head();
    }
    return room() >= need;
  }

  /// Something will be sent soon.
  void prepare() const { prefetch_to_write(memory_ + (tail_ & mask_)); }

  void publish() {
    if (first_ == nullptr) {
      return;
    }
    clear_the_end(memory_ + (tail_ & mask_), tag_.at(tail_));
    // release: frames and what is behind them before the first length; pairs with FrameReader::peek
    // and load_frame_word.
    __atomic_store_n(&first_->bytes, first_bytes_, __ATOMIC_RELEASE);
    first_ = nullptr;
    prefetch_to_write(frame_at(tail_ + 64));
    wake();
  }

  /// Where the next frame will begin. Wraps.
  [[nodiscard]] uint32_t tail() const { return tail_; }
  /// Whether the reader is done with all that lies before `position`, a former tail().
  [[nodiscard]] bool passed(uint32_t position) {
    look_at_head();
    return static_cast<int32_t>(head_ - position) >= 0;
  }
  /// The bytes that the frame of type kPull at `position` tells of will go: unless the reader is
  /// done with it, it shall not believe what it reads from now on.
  void revoke(uint32_t position) {
    if (memory_ != nullptr && !passed(position + static_cast<uint32_t>(sizeof(Frame)))) {
      __atomic_store_n(reinterpret_cast<uint8_t*>(&frame_at(position)->type),
                       static_cast<uint8_t>(FrameType::kRevoked), __ATOMIC_RELAXED);
      // Before the bytes change; pairs with the acquire in is_pull().
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  /// The reader has given back what it was not given: do not believe it any more.
  [[nodiscard]] bool foul() const { return foul_; }

 private:
  static constexpr uint32_t kLineBytes = 64;
  static constexpr uint32_t kEndBytes = 32;  // of what is behind the last frame

  /// Clear bytes of an earlier lap that could be taken for a frame. @param tag of the position.
  [[gnu::always_inline]] static void clear_the_end(uint8_t* end, uint32_t tag) {
    if (is_frame(load32(end) ^ tag)) [[unlikely]] {
      store32(end, 0);
    }
  }

  [[nodiscard]] Frame* frame_at(uint32_t position) {
    return reinterpret_cast<Frame*>(memory_ + (position & mask_));
  }
  [[nodiscard]] uint32_t room() const { return mask_ + 1 - (tail_ - head_); }
  void look_at_head() {
    // acquire: the reader is done with the bytes; pairs with FrameReader::release.
    const uint32_t head = shared_->head.load(std::memory_order_acquire);
    if (tail_ - head > tail_ - head_) [[unlikely]] {
      foul_ = true;
      return;
    }
    head_ = head;
  }
  /// The frame at the tail is complete, but its reader does not see it yet.
  void hold_back(Frame* first, uint32_t bytes) {
    first_ = first;
    first_bytes_ = bytes | tag_.at(tail_);
    short_end_ = tail_;  // so that what is short asks for room, which publishes
  }
  /// Look how far short frames may go from here, for put_short(). @return whether one of `bytes`
  /// has room.
  [[gnu::noinline]] [[nodiscard]] bool look_for_short(uint32_t bytes) {
    publish();
    look_at_head();
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
  uint32_t head_ = 0;         // as last seen
  uint32_t short_end_ = 0;    // position up to which there is room in a row
  uint32_t short_tag_ = 0;    // of all positions before that
  Frame* first_ = nullptr;    // first that is not published
  uint32_t first_bytes_ = 0;  // and its tag
  bool foul_ = false;
  const FrameRingShared* shared_;
  Bell* bell_;
};

/// Take a value for what it is now: what follows uses it and does not read its memory again, which
/// another process may have changed.
[[nodiscard]] [[gnu::always_inline]] inline uint64_t pinned(uint64_t value) {
  asm("" : "+r"(value));
  return value;
}

/// First eight bytes of a frame: `bytes`, `type` and what stands beside it. There is a frame if the
/// lower half is_frame(). @param tag of its position.
[[nodiscard]] inline uint64_t load_frame_word(const uint8_t* frame, uint32_t tag) {
  if constexpr (base::kThreadSanitizer) {  // the upper half is written before the lower says so
    uint64_t word = 0;
    // acquire: as below.
    if (is_frame(__atomic_load_n(reinterpret_cast<const uint32_t*>(frame), __ATOMIC_ACQUIRE) ^
                 tag)) {
      std::memcpy(&word, frame, sizeof(word));
      word ^= tag;
    }
    return word;
  }
  // acquire: the frame after its length; pairs with FrameWriter::publish.
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(frame), __ATOMIC_ACQUIRE) ^ tag;
}

/// Whether the bytes that a frame of type kPull told of were there until now. After they were read.
[[nodiscard]] inline bool is_pull(const uint8_t* frame) {
  // acquire: after the bytes; pairs with the fence in FrameWriter::revoke().
  std::atomic_thread_fence(std::memory_order_acquire);
  return __atomic_load_n(frame + offsetof(Frame, type), __ATOMIC_ACQUIRE) ==
         static_cast<uint8_t>(FrameType::kPull);
}

/// Reader's end. One thread at a time.
class FrameReader {
 public:
  FrameReader(FrameRingShared* shared, const uint8_t* memory, uint32_t bytes)
      : memory_(memory), mask_(bytes - 1), tag_(bytes), shared_(shared) {}

  /// The next frame, or null. It stays until pop() and release(), its copy until the next peek().
  /// A writer that gives an impossible length is not read any more.
  [[nodiscard]] const InFrame* peek() {
    const uint8_t* at = next();
    const uint64_t word = load_frame_word(at, tag());
    return is_frame(static_cast<uint32_t>(word)) ? take(at, word) : nullptr;
  }

  /// Where the next frame is, or will be; load_frame_word() tells which. Unchecked.
  [[nodiscard]] const uint8_t* next() const { return memory_ + (head_ & mask_); }
  /// Tag of the next frame, and of those behind it up to the end of the memory.
  [[nodiscard]] uint32_t tag() const { return tag_.at(head_); }

  /// The writer gave an impossible length: nothing will come any more.
  [[nodiscard]] bool foul() const { return foul_; }

  /// Bytes from the next frame to the end of the memory.
  [[nodiscard]] uint32_t to_end() const { return mask_ + 1 - (head_ & mask_); }

  void pop(const InFrame* frame) { head_ += frame->bytes; }
  /// Pop several frames that lie in a row.
  void pop_bytes(uint32_t bytes) { head_ += bytes; }

  /// Give popped frames' room back.
  void release() {
    // release: reads of the frames done before; pairs with FrameWriter::look_at_head.
    shared_->head.store(head_, std::memory_order_release);
  }

 private:
  static_assert(sizeof(Frame) == 4 * sizeof(uint64_t));

  /// Copy the header. @param word its first eight bytes, as they were when it was there.
  [[nodiscard]] const InFrame* take(const uint8_t* at, uint64_t word) {
    const auto bytes = static_cast<uint32_t>(word);
    const auto type = static_cast<FrameType>(word >> 32 & 0xFF);
    const bool skip = type == FrameType::kSkip;
    // No filler is a whole ring.
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
  InFrame next_;
};

}  // namespace rio::model
