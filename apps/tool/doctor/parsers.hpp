/// @file
/// Foreign text and bytes that doctor looks at. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rio::tool {

/// Soft limit of memory that a process may lock, in bytes, from the text of proc/PID/limits;
/// UINT64_MAX for unlimited. @return nothing where it does not say.
[[nodiscard]] std::optional<uint64_t> parse_memlock(const std::string& limits);

/// Folders where hugetlbfs is mounted, from the text of proc/mounts; each once.
[[nodiscard]] std::vector<std::string> hugetlbfs_mounts(const std::string& text);

/// A word for the shell, in quotes where it needs them: any user may have chosen a file's name.
[[nodiscard]] std::string shell_word(const std::string& text);

/// Version of EAL's library that a shared library was built for. @param library its bytes, any.
/// @return 23 of librte_eal.so.23; nothing where it names none.
[[nodiscard]] std::optional<unsigned> needed_eal(const std::string& library);

}  // namespace rio::tool
