// Rails that are cut and mended while peers' memory is read, written and counted up: each access
// completes once and with success, what is written is there, and no addition is lost or doubled.
#include <gtest/gtest.h>

#include "tests/soak/rma_storm.hpp"

namespace rio::test {
namespace {

TEST(RmaStorm, LosesAndRepeatsNoAccess) {
  const StormResult all =
      run_storms("accesses", [](const StormPlan& plan) { return RmaStorm(plan).run(); });
  EXPECT_GT(all.by_card, all.items / 8);
}

}  // namespace
}  // namespace rio::test
