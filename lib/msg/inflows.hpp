/// @file
/// Credits given to peers: how much each peer may send to each context. Credits stand for shares of
/// the port's buffers, and for request records.
#pragma once

#include <cstdint>

#include "lib/msg/context_slot.hpp"
#include "lib/msg/credit.hpp"
#include "lib/msg/peers.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread.
class Inflows {
 public:
  /// @param buffers receive buffers of the port. @param share as PortConfig::share.
  Inflows(uint32_t buffers, uint32_t share, Peers& peers, const ContextSlots& contexts)
      : shares_(buffers - kControlBuffers), share_(share), peers_(peers), contexts_(contexts) {}

  /// The peer asks to send to a context: it gets a share and is told so, or it is refused.
  void open(Link& link, uint32_t context);
  /// The peer had to request a short message for lack of credit: enlarge its share if buffers are
  /// left.
  void grow(Link& link, uint32_t context);
  /// Accept nothing more from the peer for a context. The unused part of its share is free at once;
  /// the rest becomes free as its messages are dropped.
  void close(Link& link, uint32_t context);

  /// `count` messages were dropped: return their credits. @param to context of ours.
  void return_credit(const Origin& origin, uint32_t to, uint32_t count);
  /// A request was answered or withdrawn: return its record. @param to context of ours.
  void return_record(const Origin& origin, uint32_t to);
  /// Implements MessageContext::lend_requests(). @return false: too many are lent.
  [[nodiscard]] bool lend_records(Link& link, uint32_t context);

  /// Buffers that belong to no share.
  [[nodiscard]] uint32_t unshared() const { return shares_.free(); }

 private:
  static constexpr uint32_t kControlBuffers =
      32;  // buffers kept for control messages, never part of a share
  static constexpr uint32_t kRecords = 1u << 16;  // most records lent, over all peers and contexts

  /// Cold, so that return_credit() saves no registers: note that the peer is to be told its limit.
  [[gnu::noinline]] void say_credit(Link& link, uint32_t context);

  SharePool shares_;  // buffers not assigned to any peer and context
  SharePool records_lent_{kRecords};
  uint32_t share_;
  Peers& peers_;
  const ContextSlots& contexts_;
};

}  // namespace rio::msg
