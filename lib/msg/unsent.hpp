/// @file
/// Messages left over from a session that ended because another process has the peer's destID.
#pragma once

#include <cstdint>

#include "lib/msg/link.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/retries.hpp"

namespace rio::msg {

/// Searches the ring and the messages that are sent once more; sets Link::unsent. @param key of the
/// session, as the peer named it. @param not_taken null, or the number of the first message that
/// the peer's present process did not receive. @return contexts that may have lost a message, for
/// Link::lost.
[[nodiscard]] uint64_t find_lost(Link& link, uint32_t key, const uint32_t* not_taken,
                                 const Outbox& outbox, const Retries& retries);

/// For a session that is over already: only now the peer's present process tells which messages it
/// did not receive. Sets Link::lost and Link::unsent.
void find_lost_late(Link& link, uint32_t not_taken, const Outbox& outbox, const Retries& retries);

}  // namespace rio::msg
