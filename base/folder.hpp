/// @file
/// Folders, of sysfs and proc, too.
#pragma once

#include <string>
#include <vector>

namespace rio::base {

/// Names in a folder, sorted. They are foreign. Any thread. @return empty: there is none, or it
/// cannot be read.
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder);

}  // namespace rio::base
