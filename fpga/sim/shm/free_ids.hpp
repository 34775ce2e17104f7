/// @file
/// Which destIDs a new member gets.
#pragma once

#include <cstdint>
#include <set>

namespace rio::sim::shm {

/// The first of the lowest `ids` in a row that are not in `taken`, from 1 on.
[[nodiscard]] uint32_t lowest_free(const std::set<uint32_t>& taken, uint32_t ids);

/// Whether `ids` in a row from `first` on are free.
[[nodiscard]] bool all_free(const std::set<uint32_t>& taken, uint32_t first, uint32_t ids);

/// The first of the next `ids` in a row that are free, from `wish` on in steps of `step`, within 16
/// bits; from `step` on once there are none above. @return `wish` if there are none at all.
[[nodiscard]] uint32_t next_free(const std::set<uint32_t>& taken, uint32_t wish, uint32_t ids,
                                 uint32_t step);

}  // namespace rio::sim::shm
