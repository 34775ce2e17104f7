/// @file
/// Large data of an endpoint: asked for in the order of all other messages, moved by dedicated
/// queues once it is matched.
#pragma once

#include <vector>

#include "lib/tag/unexpected.hpp"

namespace rio::tag {

/// One thread.
class LargeMoves {
 public:
  /// All outlive the object. Receives above the state's eager_bytes are offered to their source.
  LargeMoves(EngineState& state, UnexpectedStore& store) : state_(state), store_(store) {}

  /// Ask the peer for a send. @param small no: it is large; yes: there is no credit for it, or it
  /// has to be matched. @return as msg::MessageContext::send_large(), -ENOMEM.
  [[nodiscard]] int ask(Peer& peer, SendRequest& request, bool small);
  /// The oldest of the inbox is a request. @return false: it cannot be, or there is no memory.
  [[nodiscard]] bool arrive(Peer& peer);
  /// Move what was asked for to a receive. @return false: no memory; nothing has happened.
  [[nodiscard]] bool receive(msg::Request* from, RecvRequest& request);

  /// Tell the source of a receive where its next message may go, so that it need not ask. If that
  /// message is for another receive, it asks after all.
  void offer(RecvRequest& request);
  /// Take back the offer of a receive that is cancelled.
  void revoke(const RecvRequest& request);

  /// Whether finish() has something to do, now or later.
  [[nodiscard]] bool busy() const { return under_way_ != 0; }
  /// End what has moved, and let in peers that wait.
  void finish();
  /// Whether a large send was matched and has not ended. Between two windows of it the card may
  /// have nothing to do.
  [[nodiscard]] bool moves();
  /// Cancel all, and wait for its end for up to a second. If some does not end (its peer may be
  /// stopped), the port keeps its memory until it closes. @return whether all has ended.
  [[nodiscard]] bool leave();
  /// A probe looks for messages of `source`: let more of its requests in.
  void let_in(Address source);

 private:
  void check_crowd();

  EngineState& state_;
  UnexpectedStore& store_;
  uint32_t under_way_ = 0;    // sends, receives, and peers in crowd_
  std::vector<Peer*> crowd_;  // that have used up their window of requests
  base::Slab<LargeSend> sends_;
  base::Slab<LargeRecv> receives_;
};

}  // namespace rio::tag
