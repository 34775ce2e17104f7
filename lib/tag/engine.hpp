/// @file
/// The engine for messages of any size on a context of a port, tagged or not: the objects that they
/// go through. docs/decisions/0029-one-engine-for-long-messages.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lib/msg/message_context.hpp"
#include "lib/tag/intake.hpp"
#include "lib/tag/large_moves.hpp"
#include "lib/tag/matcher.hpp"
#include "lib/tag/outbox.hpp"
#include "lib/tag/peers.hpp"
#include "lib/tag/sessions.hpp"
#include "lib/tag/unexpected.hpp"

namespace rio::tag {

struct TaggedConfig {
  MatcherConfig matcher;
  /// Longer messages are moved by dedicated queues, where they are, once they are matched. So are
  /// others for which there is no credit. 0: as the port's profile says.
  uint64_t eager_bytes = 0;
  /// How long a send that may not wait is not taken by a peer that is new, in ms.
  uint32_t new_peer_ms = 1000;
  /// Makes a request that sends a message again in the next session, since the peer did not receive
  /// it; next_done() returns it. Only lost messages are then errors. Null: if a session ends after
  /// a send, the next send there fails, since that message may be lost. @param data to be copied;
  /// SendRequest::data points to the copy. @return null: no memory.
  std::function<SendRequest*(const void* data, uint64_t bytes)> send_again = nullptr;
};

/// Base of TaggedContext and LongMessages, which say how a receive gets its message. The port's
/// thread. The port outlives it. Nothing happens but in its calls.
class Engine {
 public:
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Cancel a request. @return 0: it comes back, with -ECANCELED, when nothing accesses its memory
  /// any more; large data may be done before that, and comes back with 0 then. -EALREADY: too late,
  /// it was matched, or sent in part: it ends by itself. -ENOENT: it is not under way.
  [[nodiscard]] int cancel(RecvRequest& request);
  [[nodiscard]] int cancel(SendRequest& request);

  /// Hot. Something that is done, the earliest first; it is the caller's. @return null: nothing is.
  [[nodiscard]] Request* next_done() { return completions_.next(); }
  /// Whether next_done() has something.
  [[nodiscard]] bool has_done() const { return !completions_.empty(); }
  /// Whether this one is done; if so it is the caller's.
  [[nodiscard]] bool test(Request& request) { return completions_.take(request); }

  [[nodiscard]] Address self() const { return peers_.self(); }
  [[nodiscard]] msg::MessagePort& port() { return port_; }
  [[nodiscard]] const EndpointStats& stats() const { return stats_; }

 protected:
  Engine(msg::MessagePort& port, std::unique_ptr<msg::MessageContext> context, bool tagged,
         uint64_t eager_bytes, const TaggedConfig& config);
  /// Requests under way end with -ECANCELED. Large data is waited for, for up to a second; if it
  /// does not end the port has to be closed next. Messages that have arrived and were not received
  /// are lost.
  ~Engine();

  /// Create a context and an object of type `Of` on it. @return as msg::MessageContext::create().
  template <class Of>
  [[nodiscard]] static int make(msg::MessagePort& port, uint16_t id, const TaggedConfig& config,
                                std::unique_ptr<Of>* out) {
    HashSeed seed;
    std::unique_ptr<msg::MessageContext> context;
    int rc = HashSeed::draw(&seed);
    rc = rc != 0 ? rc : msg::MessageContext::create(port, id, &context);
    if (rc != 0) {
      return rc;
    }
    std::unique_ptr<Of> made(new (std::nothrow) Of(port, std::move(context), config));
    rc = made != nullptr ? made->matcher_.create(seed, config.matcher) : -ENOMEM;
    if (rc == 0) {
      *out = std::move(made);
    }
    return rc;
  }

  /// Send a request to another context. @return 1, 0, or -errno, as TaggedContext::send().
  [[nodiscard]] int send_filled(Address to, uint64_t bits, Immediate immediate, const void* data,
                                uint64_t length_bytes, bool sync, SendRequest& request);
  /// A receive gets an unexpected message. @return 1: it is done; 0: it is under way; -ENOMEM:
  /// nothing has happened.
  [[nodiscard]] int take(Unexpected& message, RecvRequest& request);

  msg::MessagePort& port_;
  std::unique_ptr<msg::MessageContext> context_;
  Matcher matcher_;
  Completions completions_;
  uint64_t eager_bytes_;
  EndpointStats stats_;
  Peers peers_;
  UnexpectedStore store_;
  LargeMoves large_;
  Outbox outbox_;
  Intake intake_;
  Sessions sessions_;
  bool tagged_;
};

}  // namespace rio::tag
