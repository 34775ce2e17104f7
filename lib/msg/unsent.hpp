/// @file
/// Finds the messages that an ended session has not delivered. Used when another process has taken
/// the peer's destID.
#pragma once

#include <cstdint>

#include "lib/msg/link.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/retries.hpp"

namespace rio::msg {

/// Search the ring and the messages to resend; sets Link::unsent. @param key the peer's key of the
/// session. @param not_taken null, or number of the first message that the peer's new process did
/// not receive. @return contexts that may have lost a message, for Link::lost.
[[nodiscard]] uint64_t find_lost(Link& link, uint32_t key, const uint32_t* not_taken,
                                 const Outbox& outbox, const Retries& retries);

/// Search again, when the peer's new process reports which messages it did not receive only after
/// the session has ended. Sets Link::lost and Link::unsent.
void find_lost_late(Link& link, uint32_t not_taken, const Outbox& outbox, const Retries& retries);

}  // namespace rio::msg
