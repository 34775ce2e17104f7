/// @file
/// Lists of CPUs as text: "1,3-5". Pure functions, any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rio::pmd::cores {

/// Parse a list: numbers up to 65535 and rising ranges, separated by commas. @param out the numbers
/// in the order of the text, doubles kept. @param problem set to the error. @return whether it is a
/// list.
[[nodiscard]] bool parse_cpu_list(const std::string& text, std::vector<unsigned>* out,
                                  std::string* problem);

/// Print a list. @param cpus ascending. @return "0-3,8".
[[nodiscard]] std::string format_cpu_list(std::span<const unsigned> cpus);

}  // namespace rio::pmd::cores
