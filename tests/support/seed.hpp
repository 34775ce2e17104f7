/// @file
/// Where random tests begin.
#pragma once

#include <cstdint>

namespace rio::test {

/// The first seed of a random test: the variable RIO_SEED, a number or "random"; 1 if it is not
/// set, so that a run repeats. A drawn seed is printed, and is the same for the whole process. Ends
/// the process with exit code 1 if the variable is neither.
[[nodiscard]] uint32_t first_seed();

}  // namespace rio::test
