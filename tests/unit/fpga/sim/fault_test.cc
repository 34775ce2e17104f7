// Faults by seed: distinct, at times within the range, and the same for the same seed.
#include "fpga/sim/fault.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace rio::sim {
namespace {

[[nodiscard]] NetworkTopology make(const char* text) {
  NetworkTopology topology;
  std::string error;
  EXPECT_EQ(NetworkTopology::create(text, &topology, &error), 0) << error;
  return topology;
}

using Place = std::tuple<uint64_t, uint32_t>;

[[nodiscard]] std::vector<Place> places(const std::vector<NetworkFault>& faults) {
  std::vector<Place> all;
  for (const NetworkFault& fault : faults) {
    all.emplace_back(fault.at_ns, fault.target);
  }
  return all;
}

TEST(RandomFaults, AreDistinctAndInOrderOfTime) {
  const NetworkTopology topology = make("fat-tree:4x2");
  const auto faults = random_faults(topology, FaultKind::kDeviceDown, 10, 1000, 1003, 5);
  ASSERT_EQ(faults.size(), 10u);
  std::set<uint32_t> targets;
  uint64_t before_ns = 1000;
  for (const NetworkFault& fault : faults) {
    EXPECT_EQ(fault.kind, FaultKind::kDeviceDown);
    EXPECT_LT(fault.target, topology.nodes());
    EXPECT_TRUE(targets.insert(fault.target).second);
    EXPECT_GE(fault.at_ns, before_ns);
    EXPECT_LE(fault.at_ns, 1003u);
    before_ns = fault.at_ns;
  }
}

TEST(RandomFaults, LinksThatDoNotExistDoNotFail) {
  const NetworkTopology topology = make("mesh:3x3");
  const auto faults = random_faults(topology, FaultKind::kLinkDown, UINT32_MAX, 7, 7, 1);
  ASSERT_EQ(faults.size(), 24u);
  for (const NetworkFault& fault : faults) {
    EXPECT_TRUE(topology.has_link(fault.target));
    EXPECT_EQ(fault.at_ns, 7u);
  }
}

TEST(RandomFaults, TheSeedDecides) {
  const NetworkTopology topology = make("torus:4x4");
  const auto make_some = [&](uint64_t seed) {
    return places(random_faults(topology, FaultKind::kLinkDown, 20, 0, 1'000'000, seed));
  };
  EXPECT_EQ(make_some(1), make_some(1));
  EXPECT_NE(make_some(1), make_some(2));
}

}  // namespace
}  // namespace rio::sim
