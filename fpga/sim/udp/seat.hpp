/// @file
/// Which place a member wants in a fabric, and what the user's words and the members file say about
/// where that is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/sim/udp/members_file.hpp"
#include "fpga/sim/udp/socket.hpp"

namespace rio::sim::udp {

/// Which place a member wants in which fabric.
struct Seat {
  std::string fabric;  ///< name; members of other fabrics are refused
  /// The first destID of the card, which stands in the `members` file. 0, without such a file:
  /// members find each other by reach(), and each calls the others by destIDs of its own. Of two
  /// members the same one has the lower destID for both: who talks to whom first is settled by
  /// that.
  uint32_t id = 0;
  uint32_t ids = 1;          ///< destIDs of the card, 1 to kIdsMax
  std::string members = {};  ///< a file; with it nobody else is let in, and `id` has to be there
  std::string bind = {};     ///< as Address::local(); not with a file
  uint16_t port = 0;         ///< 0: any; not with a file
  std::string key = {};      ///< empty: nothing is sealed
  uint32_t patience_s = 30;  ///< silence after which a peer is taken for dead
  PathFaults faults = {};    ///< of what this member sends
};

/// Where a member is, and where the others of its file are.
struct Places {
  Address own;
  std::vector<Place> others;
};
/// Look into the file, or at this machine's interfaces. @param out set only on success.
/// @return 0; -EINVAL (the seat, the file), -EADDRNOTAVAIL (`bind`), -errno of the file; `error`
/// says what and why.
[[nodiscard]] int find_places(const Seat& seat, Places* out, std::string* error);

/// Hold the own address against those of the file. @param own bound to this machine.
/// @param warning what the user has to know: others cannot be reached now; untouched if all can.
/// @return 0; -EADDRNOTAVAIL: the two can never talk, `error` says why.
[[nodiscard]] int look_at_ways(const Seat& seat, const Address& own,
                               const std::vector<Place>& others, std::string* warning,
                               std::string* error);

}  // namespace rio::sim::udp
