/// @file
/// The engine for messages of any size on a context of a port, tagged or not: the objects that they
/// go through. docs/decisions/0029-one-engine-for-long-messages.md.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/tag/sessions.hpp"

namespace rio::tag {

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
  [[nodiscard]] Request* next_done() { return state_.completions.next(); }
  /// Whether next_done() has something.
  [[nodiscard]] bool has_done() const { return !state_.completions.empty(); }
  /// Whether this one is done; if so it is the caller's.
  [[nodiscard]] bool test(Request& request) { return state_.completions.take(request); }

  [[nodiscard]] Address self() const { return state_.peers.self(); }
  [[nodiscard]] msg::MessagePort& port() { return state_.port; }
  [[nodiscard]] const EndpointStats& stats() const { return state_.stats; }

 protected:
  Engine(msg::MessagePort& port, std::unique_ptr<msg::MessageContext> context, bool tagged,
         const TaggedConfig& config);
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
    rc = made != nullptr ? made->state_.matcher.create(seed) : -ENOMEM;
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

  EngineState state_;
  UnexpectedStore store_{state_};
  LargeMoves large_{state_, store_};
  Outbox outbox_{state_, large_};
  Intake intake_{state_, store_, large_, sessions_};
  Sessions sessions_{state_, store_, intake_, outbox_};
};

}  // namespace rio::tag
