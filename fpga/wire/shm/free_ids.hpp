/// @file
/// Choose destIDs for a new member.
#pragma once

#include <cstdint>
#include <set>

namespace rio::wire::shm {

/// The first of the lowest `ids` consecutive destIDs, from 1 on, that are not in `taken`.
[[nodiscard]] uint32_t lowest_free(const std::set<uint32_t>& taken, uint32_t ids);

/// Whether `ids` consecutive destIDs from `first` on are free.
[[nodiscard]] bool all_free(const std::set<uint32_t>& taken, uint32_t first, uint32_t ids);

/// The first of the next `ids` consecutive free destIDs within 16 bits, searched from `wish` on in
/// steps of `step`, then from `step` on. @return `wish` if there are none at all.
[[nodiscard]] uint32_t next_free(const std::set<uint32_t>& taken, uint32_t wish, uint32_t ids,
                                 uint32_t step);

}  // namespace rio::wire::shm
