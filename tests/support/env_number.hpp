/// @file
/// Numbers that scripts give to tests by the environment.
#pragma once

#include <cstdint>

namespace rio::test {

/// A number of the environment, read as base/number.hpp says. Ends the process with exit code 1 if
/// it is none: a test that takes "abc" for 0 has tried nothing.
/// @param otherwise what it is where it is not given.
[[nodiscard]] uint64_t env_number(const char* name, uint64_t otherwise);

}  // namespace rio::test
