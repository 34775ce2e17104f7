/// @file
/// A message that has arrived, where it lies.
#pragma once

#include <cstdint>

#include "lib/msg/header.hpp"

namespace rio::msg {

class Link;

/// Bytes in a buffer of the port's. They are the holder's until Port::give_back().
struct Delivery {
  uint8_t* data;     ///< first byte behind the header
  Link* link;        ///< who sent it
  uint16_t bytes;    ///< 0 to kPartBytesMax
  uint16_t from;     ///< sender's context
  uint32_t session;  ///< of the link, when it came

  /// kData, kFirst or kMore.
  [[nodiscard]] Kind kind() const {
    return static_cast<Kind>(data[offsetof(Header, kind) - sizeof(Header)]);
  }
};
static_assert(sizeof(Delivery) == 24);

/// What waits for a context: a ring that cannot overflow, since it has a place for each buffer.
class Inbox {
 public:
  Inbox(Delivery* memory, uint32_t entries) : entries_(memory), mask_(entries - 1) {}

  void push(const Delivery& delivery) { entries_[tail_++ & mask_] = delivery; }
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] uint32_t count() const { return tail_ - head_; }
  /// The oldest. @return null: none.
  [[nodiscard]] Delivery* front() { return empty() ? nullptr : &entries_[head_ & mask_]; }
  /// @param i below count(); 0 is the oldest.
  [[nodiscard]] Delivery& at(uint32_t i) { return entries_[(head_ + i) & mask_]; }
  void pop() { ++head_; }

 private:
  Delivery* entries_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace rio::msg
