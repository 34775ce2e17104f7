/// @file
/// Tagged messages over a context of a port, in the order that MPI demands.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "lib/tag/engine.hpp"

namespace rio::tag {

/// The port's thread. The port outlives it. Nothing happens but in its calls.
///
/// Functions that begin something return 1: it is done already, `request` is the caller's; 0: it is
/// under way, and comes back by next_done() or test(); or -errno: nothing has happened.
class TaggedContext : public Engine {
 public:
  /// @param context number below msg::kContexts; peers send to it.
  /// @return 0, or as msg::MessageContext::create(); -ENOMEM.
  [[nodiscard]] static int create(msg::MessagePort& port, uint16_t context,
                                  const TaggedConfig& config, std::unique_ptr<TaggedContext>* out);

  /// Hot. Send. Messages to one peer keep their order. @param data stays as it is while the send is
  /// under way. @return as above; -ECONNRESET and the like (what was sent to this peer earlier may
  /// be lost; the next call begins anew), -EINVAL (address, length), -ENOMEM.
  [[nodiscard, gnu::always_inline]] int send(Address to, uint64_t bits, const void* data,
                                             uint64_t length_bytes, SendRequest& request,
                                             Immediate immediate = {}) {
    if (send_tiny(to, bits, immediate, data, length_bytes) ||
        send_whole(to, bits, immediate, data, length_bytes)) [[likely]] {
      request.status = 0;
      return 1;
    }
    return send_filled(to, bits, immediate, data, length_bytes, false, request);
  }
  /// Send as send() does, if it can be done at once and with little: no request is needed.
  /// @return false: nothing has happened.
  [[nodiscard]] bool send_tiny(Address to, uint64_t bits, Immediate immediate, const void* data,
                               uint64_t length_bytes) {
    return outbox_.send_tiny(to, bits, immediate, data, length_bytes);
  }
  /// send_tiny() for a message of any length that goes in one part. @return false: nothing has
  /// happened.
  [[nodiscard]] bool send_whole(Address to, uint64_t bits, Immediate immediate, const void* data,
                                uint64_t length_bytes) {
    return outbox_.send_whole(to, bits, immediate, data, length_bytes);
  }
  /// Send as send() does, but the send is done only when the message was matched: MPI's Ssend. The
  /// message is asked for.
  [[nodiscard]] int send_sync(Address to, uint64_t bits, const void* data, uint64_t length_bytes,
                              SendRequest& request, Immediate immediate = {}) {
    return send_filled(to, bits, immediate, data, length_bytes, true, request);
  }

  /// Hot. Receive. @param pattern.source of address(), or kAnySource. @param buffer the library's
  /// while the receive is under way. @return as above.
  [[nodiscard]] int receive(const Pattern& pattern, void* buffer, uint64_t capacity_bytes,
                            RecvRequest& request) {
    static_cast<Pattern&>(request) = pattern;
    request.capacity_bytes = capacity_bytes;
    request.buffer = static_cast<uint8_t*>(buffer);
    request.status = 0;
    if (Message* const message = state_.matcher.post(request); message != nullptr) [[unlikely]] {
      return take_matched(static_cast<Unexpected&>(*message), request);
    }
    request.stage = Stage::kWaiting;
    if (capacity_bytes > state_.config.eager_bytes && pattern.source != kAnySource) [[unlikely]] {
      large_.offer(request);
    }
    return 0;
  }

  /// Whether a receive of this pattern would take a message now. Makes progress.
  [[nodiscard]] bool probe(const Pattern& pattern, MessageInfo* info);
  /// Matched probe: probe(), and the message is only for receive_claimed(). @return null: none.
  [[nodiscard]] Message* claim(const Pattern& pattern, MessageInfo* info);
  /// @param message of claim(), used up. @return as above; -ENOENT: it is not claimed.
  [[nodiscard]] int receive_claimed(Message& message, void* buffer, uint64_t capacity_bytes,
                                    RecvRequest& request);

  /// Hot. Let the library work. Bounded.
  void progress() {
    state_.port.progress();
    attend();
  }
  /// Hot. The part of progress() that is this context's own: for callers that have several on one
  /// port, and call MessagePort::progress() once for all.
  void attend() {
    if (sessions_.changed()) [[unlikely]] {
      sessions_.look();
    }
    if (const uint32_t count = state_.context->inbox().count(); count != 0) {
      if (count != 1 || !intake_.arrive_alone()) {
        intake_.drain();
      }
    }
    if (large_.busy()) [[unlikely]] {
      large_.finish();
    }
    if (outbox_.waits()) [[unlikely]] {
      outbox_.send_waiting();
    }
  }
  /// After MessagePort::meet_instance(): another process has this destID now. End operations with
  /// the former one, drop errors not yet reported, and give its unreceived messages the source
  /// kFormerSource.
  void forget_former(uint32_t dest_id) { sessions_.forget_former(dest_id); }

  /// Make progress until all sends have gone and arrived. Sends that were asked for, or that go to
  /// this context, are not waited for until a receive has matched them. @return 0, -ETIMEDOUT.
  [[nodiscard]] int flush(uint32_t timeout_ms);

  /// How often a context of a peer had closed or did not exist, modulo 2^8.
  [[nodiscard]] uint8_t refusals(Address to) {
    const msg::Link* const direct = outbox_.direct_link(to);
    const msg::Link* const link = direct != nullptr ? direct : state_.peers.link_of(to);
    return link != nullptr ? link->refusals[context_of(to)] : 0;
  }
  /// Whether there are messages that no receive has matched.
  [[nodiscard]] bool has_unexpected() { return !state_.matcher.messages().empty(); }
  /// Drop those of these messages that are whole: for a caller that posts its receives before its
  /// messages can arrive.
  void drop_unexpected() { store_.drop_whole(); }

 private:
  friend class Engine;
  TaggedContext(msg::MessagePort& port, std::unique_ptr<msg::MessageContext> context,
                const TaggedConfig& config)
      : Engine(port, std::move(context), true, config) {}

  [[nodiscard]] int take_matched(Unexpected& message, RecvRequest& request);
};

}  // namespace rio::tag
