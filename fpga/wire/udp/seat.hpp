/// @file
/// A member's place in a fabric, and its address, from the user's options and the members file,
/// which all machines share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/wire/udp/address.hpp"
#include "fpga/wire/udp/socket.hpp"

namespace rio::wire::udp {

/// A request for a place in a fabric.
struct Seat {
  std::string fabric;  ///< name; members of other fabrics are refused
  /// First destID of the card, listed in the `members` file. 0 without such a file: members find
  /// each other by reach(), and each calls the others by destIDs of its own. Both members of a pair
  /// agree on which has the lower destID, which decides whose call counts.
  uint32_t id = 0;
  uint32_t ids = 1;          ///< destIDs of the card, 1 to kIdsMax
  std::string members = {};  ///< a file; if set, only its members are let in, and it must list `id`
  std::string bind = {};     ///< as for Address::local(); not with a file
  uint16_t port = 0;         ///< 0: any; not with a file
  std::string key = {};      ///< empty: nothing is sealed
  uint32_t patience_s = 30;  ///< a peer that is silent for so long counts as dead
  PathFaults faults = {};    ///< faults of the datagrams that this member sends
};

/// A line of the file: the first destID of a card, and its address.
struct Place {
  uint32_t id = 0;
  Address address;
};

/// Read lines "DESTID HOST:PORT"; a '#' starts a comment. Looks up host names now. @return 0;
/// -errno of the file; -EINVAL: a line is wrong, or a destID or an address is listed twice. `error`
/// names file and line and the remedy.
[[nodiscard]] int read_members(const std::string& path, std::vector<Place>* out,
                               std::string* error);

/// The address of a member, and those of the other members in its file.
struct Places {
  Address own;
  std::vector<Place> others;
};
/// Read the file, or check this machine's interfaces. @param out set only on success. @return 0;
/// -EINVAL (the seat, the file), -EADDRNOTAVAIL (`bind`), -errno of the file; `error` gives the
/// cause.
[[nodiscard]] int find_places(const Seat& seat, Places* out, std::string* error);

/// Compare the own address with those in the file. @param own bound to this machine. @param warning
/// set if others cannot be reached now; else unchanged. @return 0; -EADDRNOTAVAIL: the two can
/// never communicate, `error` gives the cause.
[[nodiscard]] int check_paths(const Seat& seat, const Address& own,
                              const std::vector<Place>& others, std::string* warning,
                              std::string* error);

}  // namespace rio::wire::udp
