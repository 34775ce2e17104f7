// Rails that are cut and mended in the middle of traffic: no message is lost, doubled, out of order
// or torn.
#include <gtest/gtest.h>

#include "tests/soak/rail_storm.hpp"

namespace rio::test {
namespace {

/// @param bytes_most of a message.
void run_rail_storms(uint32_t bytes_most) {
  run_storms("messages", [&](const StormPlan& plan) { return RailStorm(plan, bytes_most).run(); });
}

TEST(RailStorm, LosesNoSmallMessage) {
  run_rail_storms(256);
}

TEST(RailStorm, LosesNoMessageOfAnySize) {
  run_rail_storms(100'000);
}

}  // namespace
}  // namespace rio::test
