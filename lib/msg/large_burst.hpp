/// @file
/// How many messages of large data go in one burst. Pure function, any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rio::msg {

/// The messages to post now: bursts are neither short, nor leave a short one behind, unless so few
/// are due. A message alone costs a doorbell, and, as it is ordered, a round trip in which its
/// mailbox does nothing else. @param due messages that may be posted. @param room for how many
/// there is room. @param burst_min shortest burst, at least 1. @return 0 to min(due, room); 0: wait
/// for completions, which make room.
[[nodiscard]] constexpr uint32_t large_burst(uint32_t due, uint32_t room, uint32_t burst_min) {
  if (room >= due) {
    return due;
  }
  if (room < burst_min) {
    return 0;
  }
  // In halves, if two bursts are too many: others with more to send would take this room for ever.
  return due < 2 * burst_min ? due / 2 : std::min(room, due - burst_min);
}

}  // namespace rio::msg
