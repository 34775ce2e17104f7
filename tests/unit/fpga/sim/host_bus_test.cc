// The bus of a host, computed by hand.
#include "fpga/sim/host_bus.hpp"

#include <gtest/gtest.h>

namespace rio::sim {
namespace {

// 315 and 372 MB/s.
constexpr HostBusRates kPci{.read_ps_per_byte = 3175, .write_ps_per_byte = 2688};

TEST(HostBus, CarriesOneTransferAtATime) {
  HostBus bus(kPci);
  EXPECT_EQ(bus.read(1000, 256), 1813u);   // 812.8 ns, rounded up
  EXPECT_EQ(bus.write(1000, 256), 2502u);  // 688.1 ns, after the read
  EXPECT_EQ(bus.read(2400, 256), 3315u);
  EXPECT_EQ(bus.read(5000, 8), 5026u);  // the bus was idle
  EXPECT_EQ(bus.busy_ns(), 813u + 689u + 813u + 26u);
}

TEST(HostBus, ADirectionWithoutARateTakesNoTimeButWaits) {
  HostBus bus({.read_ps_per_byte = 1000});
  EXPECT_EQ(bus.write(10, 4096), 10u);
  EXPECT_EQ(bus.read(10, 4096), 4106u);
  EXPECT_EQ(bus.write(11, 4096), 4106u);
  EXPECT_EQ(bus.busy_ns(), 4096u);
}

TEST(HostBus, LongTransfersAtSlowRates) {
  HostBus bus({.write_ps_per_byte = UINT32_MAX});
  EXPECT_EQ(bus.write(0, 1'000'000), uint64_t{UINT32_MAX} * 1000);
}

}  // namespace
}  // namespace rio::sim
