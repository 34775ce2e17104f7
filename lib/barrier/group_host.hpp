/// @file
/// The objects that the groups of a context share. Private to lib/barrier.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/barrier/card_barriers.hpp"
#include "lib/barrier/group.hpp"
#include "lib/barrier/mail.hpp"
#include "lib/msg/message_port.hpp"

namespace rio::barrier {

class GroupMember;

inline constexpr uint64_t kMsNs = 1'000'000;

struct GroupHost {
  BarrierContext& context;
  msg::MessagePort& message_port;
  Mail& mail;
  BarrierStats& stats;
  CardBarriers* card;  ///< null: the card has no engine for this context
  uint64_t node;       ///< node_mark()

  /// A random number that is not 0.
  virtual uint32_t draw() = 0;
  /// Wait as msg::wait() does, but do the work that is due by the clock at least once a slice.
  /// Called without a Guard. @return as msg::wait().
  [[nodiscard]] virtual int wait_for(uint32_t timeout_ms, uint32_t slice_ms,
                                     const std::function<bool()>& is_done) = 0;
  /// A member is being destroyed.
  virtual void remove(GroupMember& member) = 0;

 protected:
  GroupHost(BarrierContext& of, msg::MessagePort& port_of, Mail& mail_of, BarrierStats& stats_of,
            CardBarriers* card_of, uint64_t node_of)
      : context(of),
        message_port(port_of),
        mail(mail_of),
        stats(stats_of),
        card(card_of),
        node(node_of) {}
  ~GroupHost() = default;
};

}  // namespace rio::barrier
