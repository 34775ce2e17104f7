/// @file
/// Messages that have arrived and wait for their context.
#pragma once

#include <sys/uio.h>

#include <bit>
#include <cstdint>
#include <new>
#include <vector>

#include "lib/msg/header.hpp"

namespace rio::msg {

class Link;
struct Path;

/// The source of a message.
struct Origin {
  Link* link;
  uint32_t session;  ///< Link::session when the message arrived
  uint32_t from;     ///< the sender's context
};

/// A message in a receive buffer of the port. The holder owns the bytes until
/// MessageContext::give_back().
struct Delivery {
  iovec bytes;  ///< the message without its header
  Origin origin;
  Kind kind;  ///< always a kind that takes a credit
};

/// The kind of a message, read from the header before it. @param bytes a message in its buffer.
[[nodiscard]] inline Kind kind_of(const iovec& bytes) {
  constexpr size_t kBefore = sizeof(Header) - offsetof(Header, kind);
  return static_cast<Kind>(*(static_cast<const uint8_t*>(bytes.iov_base) - kBefore));
}

/// A queue of messages in order of arrival. Origins are kept apart, one for each run of messages
/// with the same origin. It cannot overflow: it has room for all buffers of the port, and reserve()
/// makes room before a request, which has no buffer, is added.
class Inbox {
 public:
  /// @param entries a power of two, more than the port has buffers.
  explicit Inbox(uint32_t entries) : messages_(entries), runs_(entries), mask_(entries - 1) {}

  [[nodiscard]] uint32_t count() const { return tail_ - head_; }
  [[nodiscard]] bool empty() const { return tail_ == head_; }
  /// @param i below count(); 0 is the oldest.
  [[nodiscard]] const iovec& at(uint32_t i) const { return messages_[(head_ + i) & mask_]; }
  /// Number of messages from `i` on that are contiguous in memory.
  [[nodiscard]] uint32_t in_a_row(uint32_t i) const { return mask_ + 1 - ((head_ + i) & mask_); }
  [[nodiscard]] Origin origin(uint32_t i) const {
    uint32_t run = run_head_;
    for (uint32_t left = run_left_; i >= left; left = runs_[++run & mask_].count) {
      i -= left;
    }
    return runs_[run & mask_].origin;
  }
  /// Origin of the oldest message.
  [[nodiscard]] const Origin& origin_of_run() const { return runs_[run_head_ & mask_].origin; }
  /// Drop the oldest message. @param origin set at the end of a run only. @return once the last
  /// message of a run is dropped: the credits of the run, which go back to *origin; else 0.
  [[nodiscard]] uint32_t pop(Origin* origin) {
    ++head_;
    if (--run_left_ != 0) [[likely]] {
      return 0;
    }
    return end_of_run(origin);
  }

  // Access by free-running number, for a caller that lends messages and gets them back in order.
  [[nodiscard]] uint32_t head() const { return head_; }
  [[nodiscard]] uint32_t tail_number() const { return tail_; }
  [[nodiscard]] const iovec& numbered(uint32_t number) const { return messages_[number & mask_]; }
  /// Number of the first message after run().
  [[nodiscard]] uint32_t run_end() const { return head_ + run_left_; }

  /// Length of the run at the head: messages of one origin and kind that arrived together.
  [[nodiscard]] uint32_t run() const { return run_left_; }
  /// Drop the `n` oldest messages. @param n 1 to run(). @return as the other pop().
  [[nodiscard]] uint32_t pop(uint32_t n, Origin* origin) {
    head_ += n;
    run_left_ -= n;
    return run_left_ != 0 ? 0 : end_of_run(origin);
  }

  /// Take the oldest message out. It does not count in the length of its run, since its credit
  /// comes back with MessageContext::give_back(). @return as pop().
  [[nodiscard]] uint32_t take(Delivery* out) {
    const iovec& bytes = at(0);
    Run& run = runs_[run_head_ & mask_];
    *out = {bytes, run.origin, kind_of(bytes)};
    --run.count;
    Origin origin;
    return pop(&origin);
  }

  /// Cold. Make room for `more` messages. @return false: no memory.
  [[nodiscard]] bool reserve(uint32_t more) try {
    if (count() + more > mask_ + 1) {
      grow(std::bit_ceil(count() + more));
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  /// Where to write the next messages; in_a_row(count()) of them are contiguous.
  [[nodiscard]] iovec* tail() { return &messages_[tail_ & mask_]; }
  /// Append the `count` messages that were written at tail() and share an origin.
  void push(uint32_t count, const Origin& origin) {
    if (count == 0) {
      return;
    }
    if (tail_ == head_) {
      run_left_ = count;
    }
    runs_[run_tail_++ & mask_] = {origin, count};
    tail_ += count;
  }

 private:
  struct Run {
    Origin origin;
    uint32_t count;
  };

  void grow(uint32_t entries) {
    std::vector<iovec> messages(entries);
    std::vector<Run> runs(entries);
    for (uint32_t i = head_; i != tail_; ++i) {
      messages[i & (entries - 1)] = messages_[i & mask_];
    }
    for (uint32_t i = run_head_; i != run_tail_; ++i) {
      runs[i & (entries - 1)] = runs_[i & mask_];
    }
    messages_.swap(messages);
    runs_.swap(runs);
    mask_ = entries - 1;
  }

  uint32_t end_of_run(Origin* origin) {
    const Run& run = runs_[run_head_++ & mask_];
    *origin = run.origin;
    run_left_ = runs_[run_head_ & mask_].count;
    return run.count;
  }

  std::vector<iovec> messages_;
  std::vector<Run> runs_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t run_left_ = 0;  // of the oldest run
  uint32_t run_head_ = 0;
  uint32_t run_tail_ = 0;
};

}  // namespace rio::msg
