/// @file
/// A member's place in a fabric, and its address as the user's options and the members file give
/// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/wire/udp/members_file.hpp"
#include "fpga/wire/udp/socket.hpp"

namespace rio::wire::udp {

/// The place that a member wants in a fabric.
struct Seat {
  std::string fabric;  ///< name; members of other fabrics are refused
  /// First destID of the card, which is in the `members` file. 0 without such a file: members find
  /// each other by reach(), and each calls the others by destIDs of its own. Both members of a pair
  /// agree which has the lower destID: it settles which calls first.
  uint32_t id = 0;
  uint32_t ids = 1;          ///< destIDs of the card, 1 to kIdsMax
  std::string members = {};  ///< a file; if set, only members in it are let in, and `id` must be in
                             ///< it
  std::string bind = {};     ///< as for Address::local(); not with a file
  uint16_t port = 0;         ///< 0: any; not with a file
  std::string key = {};      ///< empty: nothing is sealed
  uint32_t patience_s = 30;  ///< silence after which a peer is taken for dead
  PathFaults faults = {};    ///< of the datagrams that this member sends
};

/// Address of a member, and those of the other members of its file.
struct Places {
  Address own;
  std::vector<Place> others;
};
/// Read the file, or look at this machine's interfaces. @param out set only on success. @return 0;
/// -EINVAL (the seat, the file), -EADDRNOTAVAIL (`bind`), -errno of the file; `error` tells the
/// cause.
[[nodiscard]] int find_places(const Seat& seat, Places* out, std::string* error);

/// Compare the own address with those of the file. @param own bound to this machine. @param warning
/// set if others cannot be reached now; else untouched. @return 0; -EADDRNOTAVAIL: the two can
/// never communicate, `error` tells the cause.
[[nodiscard]] int look_at_ways(const Seat& seat, const Address& own,
                               const std::vector<Place>& others, std::string* warning,
                               std::string* error);

}  // namespace rio::wire::udp
