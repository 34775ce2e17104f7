/// @file
/// Where hugetlbfs is mounted, and names of files in commands. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

namespace rio::tool {

/// Folders where hugetlbfs is mounted, from the text of proc/mounts; each once.
[[nodiscard]] std::vector<std::string> hugetlbfs_mounts(const std::string& text);

/// A word for the shell, in quotes where it needs them: any user may have chosen a file's name.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace rio::tool
