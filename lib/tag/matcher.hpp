/// @file
/// Matching as MPI demands it: posted receives on one side, unexpected messages on the other.
#pragma once

#include <cstdint>

#include "lib/tag/message_queue.hpp"
#include "lib/tag/receive_queue.hpp"

namespace rio::tag {

struct MatcherConfig {
  uint64_t receives = 64;     // of different keys, posted at once, before a table grows
  uint64_t messages = 64;     // unexpected ones of different keys, before a table grows
  uint64_t first_number = 0;  // of the first receive
};

/// A message takes the earliest posted receive that matches it, a receive the earliest arrived
/// message. The caller hands in each peer's messages in the order in which they were sent; that
/// gives MPI's order. Nothing is allocated but tables, by create() and where more entries of
/// different keys wait at once than ever before; without memory for that, look-ups become slower
/// and nothing fails. No I/O, no clock. One thread.
class Matcher {
 public:
  /// Control path. @param seed of HashSeed::draw(); fixed ones are for tests.
  /// @return 0, -EINVAL past 2^32 entries, -ENOMEM.
  [[nodiscard]] int create(const HashSeed& seed, const MatcherConfig& config = {});

  /// Hot. @param receive that is nowhere, with its pattern.
  /// @return the message that it takes, which is the caller's then, as is the receive; or null: the
  /// receive waits, and must stay where it is.
  [[nodiscard]] Message* post(Receive& receive) {
    // The first two in one branch.
    if ((messages_.count() | (receive.ignore ^ receives_.usual())) != 0 ||
        receive.source == kAnySource) [[unlikely]] {
      return post_any(receive);
    }
    receives_.add_whole(receive);
    return nullptr;
  }

  /// Hot. A message has come. @param source below kAnySource.
  /// @return the receive that it takes, which is the caller's then; or null: keep() it before any
  /// other call.
  [[nodiscard]] Receive* arrive(uint32_t source, uint64_t bits) {
    return receives_.take(source, bits);
  }
  /// Hot. The same for messages of one source, one after another.
  [[nodiscard]] ReceiveQueue::Run arrive_run(uint32_t source) { return {receives_, source}; }
  /// The message that arrive() found no receive for. It must stay where it is.
  void keep(Message& message) { messages_.append(message); }

  /// @return the message that a receive of this pattern would take, or null.
  [[nodiscard]] const Message* probe(const Pattern& pattern) { return messages_.find(pattern); }
  /// Matched probe: the same, and no other receive or probe finds it any more. @return the handle.
  [[nodiscard]] Message* claim(const Pattern& pattern) { return messages_.claim(pattern); }
  /// Receive by handle: the message is the caller's. @return 0, or -ENOENT if it is not claimed.
  [[nodiscard]] int release(Message& message) { return messages_.release(message); }
  /// Remove a message that no receive will take: its sender is gone, or took it back.
  /// @return 0, or -ENOENT if it is not here.
  [[nodiscard]] int discard(Message& message) { return messages_.discard(message); }

  /// @return 0: nothing will match the receive; -ENOENT: it was matched before, or never posted.
  [[nodiscard]] int cancel(Receive& receive) { return receives_.cancel(receive); }

  /// To close, or when a peer is gone: cancel_if() of the one, waiting() and discard() of the
  /// other.
  [[nodiscard]] ReceiveQueue& receives() { return receives_; }
  [[nodiscard]] MessageQueue& messages() { return messages_; }

 private:
  Message* post_any(Receive& receive);

  ReceiveQueue receives_;
  MessageQueue messages_;
};

}  // namespace rio::tag
