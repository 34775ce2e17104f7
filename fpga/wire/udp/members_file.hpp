/// @file
/// The list of a fabric's members, from a file that all machines share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/wire/udp/address.hpp"

namespace rio::wire::udp {

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

}  // namespace rio::wire::udp
