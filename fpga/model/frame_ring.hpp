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

  void pop(const Frame* frame) { head_ += frame->bytes; }

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
