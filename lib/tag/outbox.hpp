/// @file
/// Sends messages to peers: at once if there is room and nothing waits before it, else in order.
#pragma once

#include <vector>

#include "lib/tag/large_moves.hpp"

namespace rio::tag {

/// The sends of a context, and their order for each peer. One thread.
class Outbox {
 public:
  /// All outlive the outbox.
  Outbox(EngineState& state, LargeMoves& large)
      : port_(state.port),
        tagged_(state.tagged),
        eager_bytes_(state.config.eager_bytes),
        read_bytes_(state.config.read_bytes),
        lone_bytes_(state.config.lone_bytes),
        state_(state),
        large_(large) {}

  /// Hot. As TaggedContext::send_tiny().
  [[nodiscard]] bool send_tiny(Address to, uint64_t bits, Immediate immediate, const void* data,
                               uint64_t length_bytes) {
    if (to != direct_.address || length_bytes > msg::kTinyBytesMax) [[unlikely]] {
      return false;
    }
    const auto count = static_cast<uint32_t>(length_bytes);
    return immediate.there ? port_.send_tiny(direct_.route, bits, immediate.value, data, count)
                           : port_.send_tiny(direct_.route, bits, data, count);
  }
  /// Hot. As TaggedContext::send_whole(). Out of line, so that send_tiny()'s callers stay short.
  [[gnu::noinline]] [[nodiscard]] bool send_whole(Address to, uint64_t bits, Immediate immediate,
                                                  const void* data, uint64_t length_bytes);
  /// Send a request that is filled in. @return as TaggedContext::send().
  [[nodiscard]] int send(SendRequest& request, SessionWatch& sessions);
  /// Hot. Whether something waits to be sent.
  [[nodiscard]] bool waits() const { return !senders_.empty(); }
  /// Send the messages that wait, as far as there is room.
  void send_waiting();
  /// A request that waits ends, with -ECANCELED.
  void cancel(SendRequest& request);

  /// The next short send must look at its peer's state.
  void end_direct() { direct_ = nobody(); }
  /// The link of a peer, if the last send went there; else null.
  [[nodiscard]] const msg::Link* direct_link(Address to) const {
    return to == direct_.address ? direct_.route.link : nullptr;
  }

  /// The session that sends to a peer belonged to has ended.
  void end_session(Peer& peer, int error);
  /// All sends to a peer end.
  void fail(Peer& peer, int error);
  /// Handle what an ended session of a link left behind, whether or not the end is news.
  void take_losses(msg::Link& link);

 private:
  /// The peer to which the next short send may go without a look at anything else.
  struct Direct {
    Address address;
    msg::Route route;
  };

  [[nodiscard]] static Direct nobody();
  [[nodiscard]] int wait_for(Peer& peer, SendRequest& request);
  [[nodiscard]] bool is_new(Peer& peer) const;
  /// Length of the headers of the layer above in a message of one part.
  [[nodiscard]] uint32_t head_of(const SendRequest& request) const {
    return tagged_ ? head_bytes(request.immediate.there) : 0;
  }
  [[nodiscard]] int push(Peer& peer, SendRequest& request);
  [[nodiscard]] int push_part(Peer& peer, SendRequest& request);
  [[nodiscard]] bool is_moved(const Peer& peer, uint64_t length_bytes, uint32_t parts) const;
  [[nodiscard]] int push_first(Peer& peer, SendRequest& request, uint32_t parts);
  [[nodiscard]] int pump(Peer& peer);
  void want(Peer& peer);
  [[nodiscard]] bool is_lost(const Peer& peer) const {
    return !state_.config.send_again || (peer.route.link->lost >> state_.context->id() & 1) != 0;
  }
  [[nodiscard]] bool may_still_send(const Peer& peer, int error) const;
  [[nodiscard]] bool send_again(Peer& peer, const msg::Again& message);

  msg::MessagePort& port_;
  Direct direct_ = nobody();
  std::vector<Peer*> senders_;  // peers that have something to send
  const bool tagged_;           // like port_ and eager_bytes_ a copy of the state's, for each send
  const uint64_t eager_bytes_;
  const uint64_t read_bytes_;
  const uint64_t lone_bytes_;
  EngineState& state_;
  LargeMoves& large_;
};

}  // namespace rio::tag
