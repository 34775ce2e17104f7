/// @file
/// What the objects of an engine share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lib/msg/message_context.hpp"
#include "lib/tag/completions.hpp"
#include "lib/tag/matcher.hpp"
#include "lib/tag/peers.hpp"

namespace rio::tag {

struct TaggedConfig {
  /// Longer messages are moved by dedicated queues, where they are, once they are matched. So are
  /// others for which there is no credit. 0: as the port chooses (MessagePort::copied_bytes()).
  uint64_t eager_bytes = 0;
  /// To a peer whose card reads this one's memory, longer messages are moved, too. Values from
  /// eager_bytes on have no effect. 0: eager_bytes; beside an eager_bytes of 0: as the port
  /// chooses.
  uint64_t read_bytes = 0;
  /// A message up to this length is not moved either if no other one to its peer is under way, and
  /// there is credit for all of it. 0 beside an eager_bytes of 0: as the port chooses.
  uint64_t lone_bytes = 0;
  /// How long a send that may not wait is not taken by a peer that is new, in ms.
  uint32_t new_peer_ms = 1000;
  /// Makes a request that sends a message again in the next session, since the peer did not receive
  /// it; next_done() returns it. Only lost messages are then errors. Null: if a session ends after
  /// a send, the next send there fails, since that message may be lost. @param data to be copied;
  /// SendRequest::data points to the copy. @return null: no memory.
  std::function<SendRequest*(const void* data, uint64_t bytes)> send_again = nullptr;
};

/// Counts of an endpoint.
struct EndpointStats {
  uint64_t unexpected = 0;  ///< messages that came before their receive
  uint64_t stalled = 0;     ///< sends that had to wait
  uint64_t offers = 0;      ///< to peers, of places for what they send next
  uint64_t large = 0;       ///< messages that were moved, or are, by dedicated queues
  uint64_t asked = 0;       ///< of sends, those that were asked for since there was no credit
  uint64_t cut_off = 0;     ///< sessions ended because the peer's messages made no sense
};

/// Ends what was under way in a session. Sessions is one; the objects that it uses know only this.
class SessionWatch {
 public:
  /// Some session may have ended: end what was under way in it.
  virtual void look() = 0;
  /// A session of a link has ended. @param session that has begun instead.
  virtual void end(msg::Link& link, uint32_t session, int error) = 0;

 protected:
  ~SessionWatch() = default;
};

/// The state of an engine that several of its objects use. It outlives them. One thread.
struct EngineState {
  msg::MessagePort& port;
  std::unique_ptr<msg::MessageContext> context;
  bool tagged;  ///< match bits stand before the bytes; a message may be asked for at any size
  TaggedConfig config;  ///< with `eager_bytes` and `read_bytes` above 0
  Peers peers{port, context->id()};
  Matcher matcher = {};
  Completions completions = {};
  EndpointStats stats = {};
};

}  // namespace rio::tag
