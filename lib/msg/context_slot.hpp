/// @file
/// The part of a context that its port writes to.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "base/fifo.hpp"
#include "lib/msg/delivery.hpp"
#include "lib/msg/transfer.hpp"

namespace rio::msg {

/// Holds a context's inbox and its finished transfers. Owned by the MessageContext; used only on
/// the port's thread.
struct ContextSlot {
  /// @param entries size of the inbox, as for Inbox.
  explicit ContextSlot(uint32_t entries) : inbox(entries) {}

  Inbox inbox;
  bool accepts_large = false;
  bool all_may_ask = false;              ///< see MessageContext::accept_large()
  std::function<void()> on_session_end;  ///< see MessageContext::on_session_end(); may be empty
  base::Fifo<SendTransfer, &SendTransfer::links>
      sent;  ///< done, not yet returned by MessageContext::next_sent()
  base::Fifo<RecvTransfer, &RecvTransfer::links>
      received;  ///< done, not yet returned by MessageContext::next_received()
};

/// The contexts of a port, indexed by id; null: no such context.
using ContextSlots = std::array<ContextSlot*, kContexts>;

}  // namespace rio::msg
