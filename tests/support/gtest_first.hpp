/// @file
/// Compiled once for all tests; see tests/meson.build. A test includes what it uses all the same.
#include <gtest/gtest.h>
