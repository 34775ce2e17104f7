/// @file
/// Messages that have arrived, or were sent to the own context, and that no receive has matched.
#pragma once

#include "base/slab.hpp"
#include "lib/tag/state.hpp"
#include "lib/tag/wire.hpp"

namespace rio::tag {

/// Owns the records of unexpected messages. Those of peers stay in the port's buffers; requests for
/// large data stay with their senders. One thread.
class UnexpectedStore {
 public:
  /// @param state outlives the store. Messages to the own context that are longer than its
  /// eager_bytes are not copied.
  explicit UnexpectedStore(EngineState& state) : state_(state) {}

  /// Take messages of up to so many bytes only; 0: none. At first all are taken.
  void accept(uint64_t length_bytes_max) { length_bytes_max_ = length_bytes_max; }
  [[nodiscard]] bool accepts(uint64_t length_bytes) const {
    return length_bytes_max_ != 0 && length_bytes <= length_bytes_max_;
  }

  /// A record that keep() has not seen. @return null: no memory.
  [[nodiscard]] Unexpected* get() { return messages_.get(); }
  void put(Unexpected* message) { messages_.put(message); }
  /// Let receives find a message. @param message of get(); filled in from `info`.
  void keep(Unexpected& message, const MessageInfo& info) {
    message.source = info.source;
    message.bits = info.bits;
    message.length_bytes = info.length_bytes;
    message.immediate = info.immediate;
    state_.matcher.keep(message);
    ++state_.stats.unexpected;
  }

  /// Take the oldest message of the inbox, or its first part, and keep it. @param skip_bytes
  /// headers before the user's bytes. @return null: no memory.
  [[nodiscard]] Unexpected* keep_arrived(Address source, const FirstHeader& header,
                                         bool has_immediate, uint32_t skip_bytes);
  /// Take the oldest of the inbox as the next part. @return false: no memory.
  [[nodiscard]] bool add_part(Unexpected& message, uint32_t skip_bytes);

  /// Take a message out of the matcher, and drop() it.
  void discard(Unexpected& message) {
    static_cast<void>(state_.matcher.discard(message));
    drop(message);
  }
  /// Give back the buffers of a message that the matcher does not have. Its sender is told.
  void drop(Unexpected& message);
  /// Take the oldest message that is whole, or asked for, out of the matcher. @return null: none.
  [[nodiscard]] Unexpected* take_whole();
  /// Drop the whole messages that were not claimed.
  void drop_whole();
  /// Drop all.
  void drop_all();

  /// Send to the own context. No card takes part: it need not be able to hear itself. @return as
  /// TaggedContext::send().
  [[nodiscard]] int send_self(SendRequest& request);
  /// Copy such a message, which a receive has matched, to its buffer.
  void take_self(Unexpected& message, const RecvRequest& request);
  /// All these sends end.
  void fail_senders(int error);

 private:
  [[nodiscard]] int keep_self(SendRequest& request);
  void end_sender(Unexpected& message, int status);

  EngineState& state_;
  uint64_t length_bytes_max_ = kLengthMax;
  Requests senders_;
  base::Slab<Part> parts_;
  base::Slab<Unexpected> messages_;
};

}  // namespace rio::tag
