/// @file
/// Chooses destIDs for a new member.
#pragma once

#include <cstdint>
#include <set>

namespace rio::wire {

/// First of the lowest `ids` consecutive destIDs, from 1 on, that are not in `taken`.
[[nodiscard]] uint32_t lowest_free(const std::set<uint32_t>& taken, uint32_t ids);

/// Whether `ids` consecutive destIDs from `first` on are free.
[[nodiscard]] bool all_free(const std::set<uint32_t>& taken, uint32_t first, uint32_t ids);

/// First of the next `ids` consecutive free destIDs within 16 bits, searched in steps of `step`
/// from `wish` on, then from `step` on. @return `wish` if there are none.
[[nodiscard]] uint32_t next_free(const std::set<uint32_t>& taken, uint32_t wish, uint32_t ids,
                                 uint32_t step);

}  // namespace rio::wire
