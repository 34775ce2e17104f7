/// @file
/// How much each peer may send to each context: shares of the port's buffers, and records
/// for requests.
#pragma once

#include <cstdint>

#include "lib/msg/context_slot.hpp"
#include "lib/msg/credit.hpp"
#include "lib/msg/peers.hpp"

namespace rio::msg {

/// Of one port; its thread.
class Inflows {
 public:
  /// @param buffers of the port. @param share as PortConfig's.
  Inflows(uint32_t buffers, uint32_t share, Peers& peers, const ContextSlots& contexts)
      : shares_(buffers - kControlBuffers), share_(share), peers_(peers), contexts_(contexts) {}

  /// The peer asks to be let in to a context: it gets a share and is told so, or it is refused.
  void open(Link& link, uint32_t context);
  /// The peer had to ask for a short message: it gets a larger share, if there is more.
  void grow(Link& link, uint32_t context);
  /// Nothing more is taken. The part of its share that the peer does not hold can be given to
  /// others; the rest comes back one by one.
  void close(Link& link, uint32_t context);

  /// So many messages are done with. @param to context of ours.
  void return_credit(const Origin& origin, uint32_t to, uint32_t count);
  /// A request was answered, or its sender does not want it any more. @param to context of ours.
  void return_record(const Origin& origin, uint32_t to);
  /// As MessageContext::lend_requests(). @return false: too many are lent.
  [[nodiscard]] bool lend_records(Link& link, uint32_t context);

  /// Buffers of no share.
  [[nodiscard]] uint32_t unshared() const { return shares_.free(); }

 private:
  static constexpr uint32_t kControlBuffers = 32;  // never part of a share
  static constexpr uint32_t kRecords = 1u << 16;   // that all windows together may be raised by

  SharePool shares_;  // of the buffers, what no context of a peer may fill
  SharePool records_lent_{kRecords};
  uint32_t share_;
  Peers& peers_;
  const ContextSlots& contexts_;
};

}  // namespace rio::msg
