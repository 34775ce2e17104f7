/// @file
/// Checks of the schedules of a whole group: that they fit together (consistent), and that a member
/// that leaves the barrier knows of every member's arrival (spread). All of them are exact; none
/// trusts the schemes.
///
/// Knowledge: a member knows of its own arrival, and learns from each notification everything that
/// the sender knew when it sent it: its own arrival, and all that it awaited in earlier rounds.
///
/// Control path: allocates. Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/barrier/grid.hpp"
#include "lib/barrier/schedule.hpp"
#include "lib/barrier/scheme.hpp"

namespace rio::barrier {

/// Computes the schedule of a rank: make_schedule(), or a broken one in a test. @return 0, -errno.
using ScheduleOf = std::function<int(uint32_t rank, Schedule* out)>;

/// The schedules of ranks 0 to `ranks` - 1. @param out set only on success.
/// @return 0, or the first error of `schedule_of`.
[[nodiscard]] int make_all(uint32_t ranks, const ScheduleOf& schedule_of,
                           std::vector<Schedule>* out);

/// Check the card's rules for each schedule, and that each notification sent in a round is awaited
/// exactly once in that round, and each one awaited is sent. O(ranks * rounds).
/// @param problem the first fault; set only on failure. @return 0, -EINVAL.
[[nodiscard]] int check_consistent(std::span<const Schedule> schedules, std::string* problem);

/// Check that each member knows of every arrival when it leaves, by a set of ranks for each member.
/// O(ranks^2 * rounds / 64) time, ranks^2 / 4 bytes. @param schedules consistent ones.
/// @param problem the first fault; set only on failure. @return 0, -EINVAL.
[[nodiscard]] int check_spread(std::span<const Schedule> schedules, std::string* problem);

/// Check for a round by which one member, the hub, knows of every arrival, and after which its
/// knowledge reaches all members: then spread holds. O(ranks * rounds * log(rounds)).
/// @param schedules consistent ones. @param hub below the number of schedules.
/// @param problem set only on failure.
/// @return 0; -EINVAL: there is no such round, though spread might hold otherwise.
[[nodiscard]] int check_hub(std::span<const Schedule> schedules, uint32_t hub,
                            std::string* problem);

/// Where the ranks lie if all schedules are translates of rank 0's.
struct Lattice {
  Grid grid{};             ///< nodes() is the number of ranks
  bool is_folded = false;  ///< each coordinate stands for a position on a folded ring
};

/// Check that each schedule is a translate of rank 0's (moved around the rings of the lattice),
/// that rank 0's is consistent with its translates, and that its peers spread all arrivals: then so
/// do all. O(ranks * rounds) time, 2 * ranks bytes; keeps no schedules.
/// @param problem the first fault; set only on failure. @return 0, -EINVAL.
[[nodiscard]] int check_translates(const Lattice& lattice, const ScheduleOf& schedule_of,
                                   std::string* problem);

/// Check that a scheme is consistent and spread at one size: by the check that fits the scheme, and
/// up to kSetsMax ranks by check_spread(), too.
/// @param problem the first fault; set only on failure.
/// @return 0, -EINVAL; the error of count_rounds() if the scheme does not fit.
[[nodiscard]] int check_scheme(const Scheme& scheme, uint32_t ranks, std::string* problem);
inline constexpr uint32_t kSetsMax = 512;

}  // namespace rio::barrier
