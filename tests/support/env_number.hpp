/// @file
/// Numbers that scripts pass to tests in environment variables.
#pragma once

#include <cstdint>

namespace rio::test {

/// Read a number from the environment, as base/number.hpp does. Ends the process with exit code 1
/// if it is not a number: a test that took "abc" for 0 would have tested nothing.
/// @param otherwise value if the variable is not set.
[[nodiscard]] uint64_t env_number(const char* name, uint64_t otherwise);

}  // namespace rio::test
