/// @file
/// Closes a context while large transfers are still under way.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "base/log.hpp"
#include "base/slab.hpp"
#include "lib/msg/message_context.hpp"

namespace rio::msg {

/// Wait up to one second for cancelled transfers to end. If some do not (their peer may be
/// stopped), hand the memory of all of them to the port, which keeps it until it closes.
/// @param all_ended collects transfers that have ended; returns whether none is left.
/// @return false: some have not ended; call leave_to_port() for the context.
template <class Sends, class Receives, class AllEnded>
[[nodiscard]] bool await_large(MessageContext& context, base::Slab<Sends>& sends,
                               base::Slab<Receives>& receives, AllEnded&& all_ended) {
  constexpr std::chrono::seconds kPatience{1};
  MessagePort& port = context.port();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!all_ended()) {
    if (std::chrono::steady_clock::now() >= end) {
      base::log_warning("context %u: large data is still under way; close its port next",
                        context.id());
      port.take_over(sends.leave());
      port.take_over(receives.leave());
      return false;
    }
    port.progress();
  }
  return true;
}

/// Close a context after await_large() returned false. The port keeps it, because the transfers
/// still report to it when they end.
inline void leave_to_port(std::unique_ptr<MessageContext> context) {
  MessagePort& port = context->port();
  context->close();
  port.take_over(std::move(context));
}

}  // namespace rio::msg
