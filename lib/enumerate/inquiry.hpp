/// @file
/// Asks a device what it is. Reads only; believes nothing that cannot be.
#pragma once

#include <string>

#include "lib/enumerate/fabric_map.hpp"
#include "lib/enumerate/maint_access.hpp"

namespace rio::enumerate {

/// Fills identity, is_switch, ports, entry_port, table_entries and the extended feature blocks.
/// @param why what is wrong with the answers, for -EPROTO.
/// @return 0, -EPROTO (they cannot be true), or as PatientAccess.
[[nodiscard]] int inquire(PatientAccess& access, const Address& at, Node* out, std::string* why);

}  // namespace rio::enumerate
