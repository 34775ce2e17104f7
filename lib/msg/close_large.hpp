/// @file
/// The end of a context whose large data is still under way.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "base/log.hpp"
#include "base/slab.hpp"
#include "lib/msg/message_context.hpp"

namespace rio::msg {

/// Wait, for up to a second, for transfers that were cancelled. Those that do not end by then, as
/// with a peer that is stopped, have their memory given to the port.
/// @param all_ended takes what has ended, and says whether nothing is left.
/// @return false: it does not end; the context is for leave_to_port().
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

/// Close a context that transfers of await_large() tell when they end.
inline void leave_to_port(std::unique_ptr<MessageContext> context) {
  MessagePort& port = context->port();
  context->close();
  port.take_over(std::move(context));
}

}  // namespace rio::msg
