/// @file
/// A byte ring of frames between one writer and one reader.
#pragma once

#include <atomic>
#include <cstdint>

#include "fpga/model/frame.hpp"

namespace rio::model {

/// The part that both ends see. Zero-initialised memory is an empty ring.
struct FrameRingShared {
  alignas(64) std::atomic<uint32_t> tail{0};  ///< written by the writer
  alignas(64) std::atomic<uint32_t> head{0};  ///< written by the reader
};

/// Writer's end. One thread at a time.
class FrameWriter {
 public:
  /// @param bytes power of two, at least 8 KiB, so that the longest message fits.
  FrameWriter(FrameRingShared* shared, uint8_t* memory, uint32_t bytes)
      : memory_(memory), mask_(bytes - 1), shared_(shared) {}

  /// Room for a frame of `bytes` (a multiple of 32), contiguous. @return null: full.
  [[nodiscard]] Frame* reserve(uint32_t bytes) {
    const uint32_t at = tail_ & mask_;
    const uint32_t to_end = mask_ + 1 - at;
    const uint32_t need = bytes <= to_end ? bytes : to_end + bytes;
    if (mask_ + 1 - (tail_ - head_) < need) [[unlikely]] {
      // acquire: the reader is done with the bytes; pairs with FrameReader::release.
      head_ = shared_->head.load(std::memory_order_acquire);
      if (mask_ + 1 - (tail_ - head_) < need) {
        return nullptr;
      }
    }
    if (bytes > to_end) [[unlikely]] {
      auto* skip = reinterpret_cast<Frame*>(memory_ + at);
      skip->bytes = to_end;
      skip->type = FrameType::kSkip;
      tail_ += to_end;
      return reinterpret_cast<Frame*>(memory_);
    }
    return reinterpret_cast<Frame*>(memory_ + at);
  }

  /// A run of free bytes at the tail.
  struct Window {
    uint8_t* bytes;
    uint32_t room;
  };
  /// Free bytes up to the end of the memory, for several frames in a row; looks for what the
  /// reader gave back if there are fewer than `wanted`.
  [[nodiscard]] Window window(uint32_t wanted) {
    const uint32_t at = tail_ & mask_;
    uint32_t room = mask_ + 1 - (tail_ - head_);
    if (room < wanted) {
      head_ = shared_->head.load(std::memory_order_acquire);  // as in reserve()
      room = mask_ + 1 - (tail_ - head_);
    }
    const uint32_t to_end = mask_ + 1 - at;
    return {memory_ + at, room < to_end ? room : to_end};
  }

  /// The reserved frame is complete (its `bytes` set); the reader sees it after publish().
  void commit(uint32_t bytes) { tail_ += bytes; }

  void publish() {
    // release: frames visible before the tail; pairs with FrameReader::peek.
    shared_->tail.store(tail_, std::memory_order_release);
  }

 private:
  uint8_t* memory_;
  uint32_t mask_;
  uint32_t tail_ = 0;
  uint32_t head_ = 0;  // as last seen
  FrameRingShared* shared_;
};

/// Reader's end. One thread at a time.
class FrameReader {
 public:
  FrameReader(FrameRingShared* shared, const uint8_t* memory, uint32_t bytes)
      : memory_(memory), mask_(bytes - 1), shared_(shared) {}

  /// The next frame, or null. It stays until pop() and release().
  [[nodiscard]] const Frame* peek() {
    if (head_ == tail_) {
      // acquire: frames visible after the tail; pairs with FrameWriter::publish.
      tail_ = shared_->tail.load(std::memory_order_acquire);
      if (head_ == tail_) {
        return nullptr;
      }
    }
    const auto* frame = reinterpret_cast<const Frame*>(memory_ + (head_ & mask_));
    if (frame->type == FrameType::kSkip) [[unlikely]] {
      head_ += frame->bytes;
      return peek();
    }
    return frame;
  }

  /// Bytes from the next frame on that are readable in a row; after a peek() that found one.
  [[nodiscard]] uint32_t in_a_row() const {
    const uint32_t ready = tail_ - head_;
    const uint32_t to_end = mask_ + 1 - (head_ & mask_);
    return ready < to_end ? ready : to_end;
  }

  void pop(const Frame* frame) { head_ += frame->bytes; }
  /// Pop several frames that lie in a row.
  void pop_bytes(uint32_t bytes) { head_ += bytes; }

  /// Give popped frames' room back.
  void release() {
    // release: reads of the frames done before; pairs with FrameWriter::reserve.
    shared_->head.store(head_, std::memory_order_release);
  }

 private:
  const uint8_t* memory_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;  // as last seen
  FrameRingShared* shared_;
};

}  // namespace rio::model
