/// @file
/// Messages of any size without tags on a context. Short ones stay in the inbox until the caller
/// takes them. Of a long one the receiver sees source and length first, then gives a buffer or
/// refuses. See docs/decisions/0018-messages-of-every-size.md.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "lib/tag/engine.hpp"

namespace rio::tag {

/// Used only on the port's thread. The port outlives it. Before it is destroyed, receive() or
/// refuse() all shown messages.
class LongMessages : public Engine {
 public:
  /// @param context number below msg::kContexts. @return 0, or as msg::MessageContext::create();
  /// -ENOMEM.
  [[nodiscard]] static int create(msg::MessagePort& port, uint16_t context,
                                  std::unique_ptr<LongMessages>* out);

  /// Has the inbox, for short messages.
  [[nodiscard]] msg::MessageContext& context() { return *state_.context; }

  /// Accept long messages up to this length, and refuse longer ones. 0, the initial setting,
  /// refuses all. @return 0, -ENOMEM.
  [[nodiscard]] int accept(uint64_t length_bytes_max);

  /// The route to a peer's context. Do not use it while has_to_send(). @return null: no such
  /// address, or no memory.
  [[nodiscard]] const msg::Route* route(Address to);
  /// Try to send what is queued for a context. @return whether something is still queued, which
  /// must go first.
  [[nodiscard]] bool has_to_send(Address to);
  /// Send a message. Messages to one context keep their order. @param data must not change while
  /// the send is under way. @return 1: sent, the bytes were copied; 0: under way; -EINVAL (address,
  /// length), -ENOMEM, or an error of MessagePort::send(): nothing has happened.
  [[nodiscard]] int send(Address to, const void* data, uint64_t length_bytes,
                         SendRequest& request) {
    return send_filled(to, 0, {}, data, length_bytes, false, request);
  }

  /// Hot. Whether there is a message to receive: a long one in shown(), or else a short one at the
  /// head of the inbox.
  [[nodiscard]] bool look() {
    const msg::Inbox& inbox = state_.context->inbox();
    return shown_ != nullptr ||
           (!inbox.empty() &&
            ((msg::kind_of(inbox.at(0)) == msg::Kind::kData && !intake_.any_incoming()) ||
             look_further()));
  }
  /// After look(). The next long message, which the caller has to receive() or refuse(); null: the
  /// inbox has a short one.
  [[nodiscard]] Unexpected* shown() { return std::exchange(shown_, nullptr); }
  /// Receive a long message, which is used up. @param buffer belongs to the library while the
  /// receive is under way. @param capacity bytes beyond it are discarded. @return 1: done; 0: under
  /// way; -ENOMEM: nothing has happened.
  [[nodiscard]] int receive(Unexpected& message, void* buffer, uint64_t capacity,
                            RecvRequest& request);
  /// Refuse a long message, which is used up. A sender that waits for the end of its send gets
  /// -ECONNREFUSED.
  void refuse(Unexpected& message) { store_.drop(message); }

  /// Whether attend() may have something to do.
  [[nodiscard]] bool busy() const {
    return outbox_.waits() || large_.busy() || intake_.any_incoming();
  }
  /// Send queued messages and collect finished ones. Called after MessagePort::progress().
  void attend();

 private:
  friend class Engine;
  LongMessages(msg::MessagePort& port, std::unique_ptr<msg::MessageContext> context,
               const TaggedConfig& config)
      : Engine(port, std::move(context), false, config) {
    store_.accept(0);
  }

  [[nodiscard]] bool look_further();

  Unexpected* shown_ = nullptr;
};

}  // namespace rio::tag
