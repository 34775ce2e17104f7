/// @file
/// Who is in a fabric, from a file that all of its machines share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/wire/udp/address.hpp"

namespace rio::wire::udp {

/// A line of the file: the first destID of a card, and where it is.
struct Place {
  uint32_t id = 0;
  Address address;
};

/// Lines "DESTID HOST:PORT"; what follows a '#' is a remark. Host names are looked up now.
/// @return 0; -errno of the file; -EINVAL: a line is wrong, or a destID or an address stands there
/// twice. `error` names file and line and says what is wanted.
[[nodiscard]] int read_members(const std::string& path, std::vector<Place>* out,
                               std::string* error);

}  // namespace rio::wire::udp
