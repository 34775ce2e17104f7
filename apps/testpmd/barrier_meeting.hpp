/// @file
/// Before a run, members of a barrier in several processes wait until all of them are there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "pmd/dev/queue_pair.hpp"

namespace rio::testpmd {

/// Exchange doorbells with all ranks of other processes, so that no member sends a notification to
/// a card whose barrier ring does not run yet. Called by the main thread, between runs. Waits at
/// most a minute. @param ours queue pairs of this process's members. @param dest_ids of all ranks.
/// @param number the same at all members, and another one each time.
/// @return 0, or -EINVAL with the remedy in `error` (one has not come, or Ctrl-C).
[[nodiscard]] int meet(std::span<pmd::QueuePair* const> ours, std::span<const uint32_t> dest_ids,
                       uint32_t number, std::string* error);

}  // namespace rio::testpmd
