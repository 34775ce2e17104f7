/// @file
/// Which DPDK a library was built for.
#pragma once

#include <optional>
#include <string>

namespace rio::tool {

/// Version of EAL's library that a shared library names. @param library its bytes, any.
/// @return 23 of librte_eal.so.23; nothing where it names none.
[[nodiscard]] std::optional<unsigned> needed_eal(const std::string& library);

}  // namespace rio::tool
