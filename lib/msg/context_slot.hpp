/// @file
/// The port's side of a context.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "lib/msg/delivery.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// Where the port puts what is for a context. Owned by the MessageContext; the port's thread.
struct ContextSlot {
  /// @param entries as Inbox takes them.
  explicit ContextSlot(uint32_t entries) : inbox(entries) {}

  Inbox inbox;
  bool accepts_large = false;
  bool all_may_ask = false;              ///< as MessageContext::accept_large()
  std::function<void()> on_session_end;  ///< as MessageContext::on_session_end(); may be empty
  LinkedList<SendTransfer> sent;         ///< done, and not yet taken by MessageContext::next_sent()
  LinkedList<RecvTransfer>
      received;  ///< done, and not yet taken by MessageContext::next_received()
};

/// The contexts of a port by their ids; null: there is none.
using ContextSlots = std::array<ContextSlot*, kContexts>;

}  // namespace rio::msg
