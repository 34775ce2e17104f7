/// @file
/// Small files of sysfs and proc. Their content is foreign: nothing here trusts it. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/folder.hpp"

namespace rio::tool {

/// The content of a file, without blanks and line ends around it; empty where it cannot be read.
[[nodiscard]] std::string text_of(const std::string& path);

/// A whole number, decimal or with 0x. @return nothing where there is none.
[[nodiscard]] std::optional<uint64_t> parse_number(const std::string& text);
[[nodiscard]] std::optional<uint64_t> number_of(const std::string& path);

/// folder/name.
[[nodiscard]] std::string joined(const std::string& folder, const std::string& name);

using base::names_in;

[[nodiscard]] bool exists(const std::string& path);

/// A field of lines "name: value" (proc/meminfo, proc/PID/status); empty if there is none.
[[nodiscard]] std::string field_of(const std::string& text, const std::string& name);

/// The word in brackets of "one [two] three"; empty if there is none.
[[nodiscard]] std::string chosen_word(const std::string& text);

/// "2 MiB", "1 GiB", "512 KiB": exact where it can be, else one digit behind the point.
[[nodiscard]] std::string size_text(uint64_t len_bytes);

/// "2M", "1G", "2048k", "2097152" as bytes. @return nothing if it is none, or 0.
[[nodiscard]] std::optional<uint64_t> parse_size(const std::string& text);

/// Names "prefix" followed by a number: "cpu3" with "cpu". @return the number.
[[nodiscard]] std::optional<unsigned> number_after(const std::string& name,
                                                   const std::string& prefix);

}  // namespace rio::tool
