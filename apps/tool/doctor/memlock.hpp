/// @file
/// The limit of memory that a process may lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rio::tool {

/// Soft limit in bytes from the text of proc/PID/limits, UINT64_MAX for unlimited. @return nothing
/// where it does not say.
[[nodiscard]] std::optional<uint64_t> parse_memlock(const std::string& limits);

}  // namespace rio::tool
