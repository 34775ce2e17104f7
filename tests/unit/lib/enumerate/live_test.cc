// The enumerator over the driver and a model card, on the emulated fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "lib/enumerate/card_access.hpp"
#include "lib/enumerate/csr.hpp"
#include "lib/enumerate/enumerator.hpp"
#include "lib/enumerate/looker.hpp"
#include "lib/enumerate/ping.hpp"
#include "lib/enumerate/route_trace.hpp"
#include "tests/support/fabric_topology.hpp"
#include "tests/support/model_bus.hpp"

namespace rio::enumerate {
namespace {

constexpr uint32_t kTimeoutMs = 10;
constexpr uint64_t kTickNs = 20'000;  // the card's time for each step

/// A card in a fabric, and the driver on it.
class Live : public MaintAccess {
 public:
  explicit Live(const std::string& json, const std::string& at = "host")
      : fabric(test::fabric(json)) {
    std::unique_ptr<model::Wire> wire;
    EXPECT_EQ(fabric->plug(at, &wire), 0);
    auto bus = std::make_unique<test::ModelBus>(model::Config{}, std::move(wire), &clock_, kTickNs);
    std::unique_ptr<Endpoint> endpoint;
    EXPECT_EQ(Endpoint::open(std::move(bus), CardAccess::config(0, false, kTimeoutMs), &endpoint),
              0);
    card_ = std::make_unique<CardAccess>(std::move(endpoint), kTimeoutMs);
  }

  int read(const Address& at, uint32_t offset, uint32_t* value) override {
    return before(at) != 0 ? -ENODEV : card_->read(at, offset, value);
  }
  int write(const Address& at, uint32_t offset, uint32_t value) override {
    return before(at) != 0 ? -ENODEV : card_->write(at, offset, value);
  }

  [[nodiscard]] int enumerate(FabricMap* map, bool steal = false) {
    EnumerateOptions options;
    options.steal = steal;
    options.limits.tries = tries;
    return Enumerator(*this, options).run(map);
  }
  [[nodiscard]] uint32_t word(uint32_t dest_id, uint32_t offset) {
    uint32_t value = 0;
    EXPECT_EQ(card_->read({dest_id, kToEndpoint}, offset, &value), 0) << dest_id;
    return value;
  }

  std::shared_ptr<wire::switched::Fabric> fabric;
  uint32_t tries = 2;
  uint32_t accesses = 0;
  std::function<int(uint32_t access)> on_access;  ///< not 0: the access fails

 private:
  [[nodiscard]] int before(const Address& at) {
    if (at.is_own_card) {
      return 0;
    }
    ++accesses;
    return on_access ? on_access(accesses) : 0;
  }
  test::ManualClock clock_;
  std::unique_ptr<CardAccess> card_;
};

std::string places(const FabricMap& map, const std::string& kind) {
  std::string all;
  for (const Problem& problem : map.problems) {
    all += problem.kind == kind ? problem.where + ";" : "";
  }
  return all;
}

TEST(LiveFabric, AllOf72TwiceTheSame) {
  Live live(test::ring_topology(8, 8));
  FabricMap first;
  ASSERT_EQ(live.enumerate(&first), 0);
  EXPECT_EQ(first.endpoints(), 64u);
  EXPECT_EQ(first.switches(), 8u);
  EXPECT_TRUE(first.problems.empty());
  FabricMap second;
  ASSERT_EQ(live.enumerate(&second), 0);
  EXPECT_TRUE(first == second);
  // Each device answers to its own destID, and none is locked.
  std::set<uint32_t> tags;
  for (uint32_t id = 1; id <= 64; ++id) {
    tags.insert(live.word(id, Csr::kComponentTag));
    EXPECT_EQ(live.word(id, Csr::kHostLock), kUnlocked);
  }
  EXPECT_EQ(tags.size(), 64u);
  EXPECT_EQ(live.fabric->counts().looped, 0u);
  // The shortest way round the ring: no endpoint is behind more than five switches.
  for (const Node& node : first.nodes) {
    EXPECT_LE(node.hops, 5u);
  }
}

TEST(LiveFabric, InspectionFindsTheSame) {
  Live live(test::ring_topology(4, 3));
  FabricMap found;
  ASSERT_EQ(live.enumerate(&found), 0);
  FabricMap seen;
  ASSERT_EQ(Looker(live, EnumerateOptions{}).run(&seen), 0);
  ASSERT_EQ(seen.nodes.size(), found.nodes.size());
  for (size_t i = 0; i < found.nodes.size(); ++i) {
    EXPECT_EQ(seen.name(i), found.name(i));
    EXPECT_EQ(seen.nodes[i].tag, found.nodes[i].tag);
    EXPECT_EQ(seen.nodes[i].parent, found.nodes[i].parent);
    EXPECT_EQ(seen.nodes[i].parent_port, found.nodes[i].parent_port);
  }
  // Inspection changes nothing.
  FabricMap again;
  ASSERT_EQ(Looker(live, EnumerateOptions{}).run(&again), 0);
  EXPECT_TRUE(seen == again);
  EXPECT_EQ(live.word(1, Csr::kHostLock), kUnlocked);
}

TEST(LiveFabric, RoutesAreFollowed) {
  Live live(test::ring_topology(4, 2));
  FabricMap found;
  ASSERT_EQ(live.enumerate(&found), 0);
  FabricMap seen;
  ASSERT_EQ(Looker(live, EnumerateOptions{}).run(&seen), 0);
  for (uint32_t source = 0; source <= 8; ++source) {
    for (uint32_t dest = 0; dest <= 8; ++dest) {
      RouteTrace trace;
      ASSERT_EQ(trace_route(seen, source, dest, &trace), 0);
      EXPECT_EQ(trace.why, "") << source << " to " << dest;
      EXPECT_LE(trace.steps.size(), 4u);
    }
  }
  RouteTrace trace;
  EXPECT_EQ(trace_route(seen, 99, 0, &trace), -ENOENT);
  ASSERT_EQ(trace_route(seen, 0, 99, &trace), 0);
  EXPECT_NE(trace.why.find("no route"), std::string::npos) << trace.why;
}

TEST(LiveFabric, CirclesOfRoutesAreSeen) {
  Live live(R"({
    "switches": [{"name": "s", "tag": 5, "routes": {"0": 0, "1": 1, "7": 1}},
                 {"name": "t", "tag": 6, "routes": {"0": 0, "1": 1, "7": 0}}],
    "endpoints": [{"name": "host"}, {"name": "e", "dest_id": 1, "tag": 9}],
    "links": [["host", "s:0"], ["s:1", "t:0"], ["t:1", "e"]]})");
  FabricMap seen;
  ASSERT_EQ(Looker(live, EnumerateOptions{}).run(&seen), 0);
  RouteTrace trace;
  ASSERT_EQ(trace_route(seen, 0, 7, &trace), 0);
  EXPECT_NE(trace.why.find("circle"), std::string::npos) << trace.why;
  ASSERT_EQ(trace_route(seen, 0, 1, &trace), 0);
  EXPECT_EQ(trace.why, "");
  EXPECT_EQ(trace.steps.size(), 2u);
}

TEST(LiveFabric, LockedDevices) {
  Live live(R"({
    "switches": [{"name": "s"}, {"name": "t", "locked_by": 9}],
    "endpoints": [{"name": "host"}, {"name": "e", "locked_by": 7}, {"name": "f"}, {"name": "g"},
                  {"name": "quiet", "silent": true}],
    "links": [["host", "s:0"], ["s:1", "e"], ["s:2", "f"], ["s:3", "t:0"], ["t:1", "g"],
              ["s:4", "quiet"]]})");
  FabricMap map;
  ASSERT_EQ(live.enumerate(&map), 0);
  EXPECT_EQ(map.endpoints(), 1u);
  EXPECT_EQ(places(map, "locked"), "switch 1 port 1;switch 1 port 3;");
  EXPECT_EQ(places(map, "silent"), "switch 1 port 4;");
  EXPECT_NE(map.nodes[1].ports[1].why.find("host 7"), std::string::npos);
  ASSERT_EQ(live.enumerate(&map, true), 0);
  EXPECT_EQ(map.endpoints(), 3u);
  EXPECT_EQ(places(map, "locked"), "");
}

TEST(LiveFabric, DevicesComeAndGoBetweenRuns) {
  Live live(test::ring_topology(4, 2));
  FabricMap map;
  ASSERT_EQ(live.enumerate(&map), 0);
  EXPECT_EQ(map.nodes.size() - 1, 12u);
  ASSERT_EQ(live.fabric->set_device("e1.0", false), 0);
  ASSERT_EQ(live.enumerate(&map), 0);
  EXPECT_EQ(map.nodes.size() - 1, 11u);
  EXPECT_TRUE(map.problems.empty());
  // A switch goes: the ring is open, and all else is still found.
  ASSERT_EQ(live.fabric->set_device("s1", false), 0);
  ASSERT_EQ(live.enumerate(&map), 0);
  EXPECT_EQ(map.switches(), 3u);
  EXPECT_EQ(map.endpoints(), 6u);
  EXPECT_TRUE(map.problems.empty());
  ASSERT_EQ(live.fabric->set_device("s1", true), 0);
  ASSERT_EQ(live.fabric->set_device("e1.0", true), 0);
  ASSERT_EQ(live.enumerate(&map), 0);
  EXPECT_EQ(map.nodes.size() - 1, 12u);
  EXPECT_TRUE(map.problems.empty());
}

// A device may go at any moment: the run ends, and either reports the device or has not seen it.
// The next run finds every device that is there.
TEST(LiveFabric, DevicesGoDuringARun) {
  Live live(test::ring_topology(3, 2));
  FabricMap map;
  ASSERT_EQ(live.enumerate(&map), 0);
  const uint32_t all = live.accesses;
  for (const char* name : {"e1.1", "s1"}) {
    for (uint32_t moment = 1; moment < all; moment += all / 23) {
      SCOPED_TRACE(std::string(name) + " at access " + std::to_string(moment));
      const uint32_t start = live.accesses;
      live.on_access = [&](uint32_t access) {
        return access == start + moment ? live.fabric->set_device(name, false) : 0;
      };
      ASSERT_EQ(live.enumerate(&map), 0);
      EXPECT_GE(map.nodes.size(), 6u);
      live.on_access = nullptr;
      ASSERT_EQ(live.enumerate(&map), 0);
      EXPECT_TRUE(map.problems.empty());
      EXPECT_EQ(map.nodes.size() - 1, name[0] == 's' ? 6u : 8u);
      ASSERT_EQ(live.fabric->set_device(name, true), 0);
      ASSERT_EQ(live.enumerate(&map), 0);
      EXPECT_TRUE(map.problems.empty());
      EXPECT_EQ(map.nodes.size() - 1, 9u);
    }
  }
}

TEST(LiveFabric, DevicesAppearDuringARun) {
  Live live(test::ring_topology(3, 2));
  FabricMap map;
  ASSERT_EQ(live.enumerate(&map), 0);
  const uint32_t all = live.accesses;
  for (uint32_t moment = 1; moment < all; moment += all / 11) {
    ASSERT_EQ(live.fabric->set_device("e1.1", false), 0);
    const uint32_t start = live.accesses;
    live.on_access = [&](uint32_t access) {
      return access == start + moment ? live.fabric->set_device("e1.1", true) : 0;
    };
    ASSERT_EQ(live.enumerate(&map), 0);
    EXPECT_GE(map.nodes.size() - 1, 8u);
    live.on_access = nullptr;
  }
}

TEST(LiveFabric, ARunThatWasCutOffCanBeRepeated) {
  Live live(test::ring_topology(3, 2));
  FabricMap whole;
  ASSERT_EQ(live.enumerate(&whole), 0);
  const uint32_t all = live.accesses;
  for (uint32_t moment = 1; moment < all; moment += all / 17) {
    const uint32_t start = live.accesses;
    live.on_access = [&](uint32_t access) { return access >= start + moment ? -ENODEV : 0; };
    FabricMap map;
    ASSERT_EQ(live.enumerate(&map), -ENODEV);
    live.on_access = nullptr;
    ASSERT_EQ(live.enumerate(&map), 0);
    EXPECT_TRUE(map == whole) << "cut off at access " << moment;
  }
}

TEST(LiveFabric, LostFrames) {
  Live live(test::ring_topology(4, 3, R"(,"loss": {"seed": 11, "rate": 0.02})"));
  live.tries = 8;
  for (int run = 0; run < 3; ++run) {
    FabricMap map;
    ASSERT_EQ(live.enumerate(&map), 0);
    EXPECT_EQ(map.nodes.size() - 1, 16u);
    EXPECT_TRUE(map.problems.empty()) << map.problems.front().what;
  }
  EXPECT_GT(live.fabric->counts().lost, 50u);
}

TEST(LiveFabric, Pings) {
  Live live(test::ring_topology(2, 2));
  FabricMap map;
  ASSERT_EQ(live.enumerate(&map), 0);
  PingResult result;
  ASSERT_EQ(ping(live, 3, 5, &result), 0);
  EXPECT_EQ(result.answered, 5u);
  EXPECT_EQ(result.identity, live.word(3, Csr::kDeviceIdentity));
  EXPECT_GT(result.min_us, 0.0);
  EXPECT_LE(result.min_us, result.mean_us);
  EXPECT_LE(result.mean_us, result.max_us);
  ASSERT_EQ(ping(live, 200, 2, &result), 0);
  EXPECT_EQ(result.answered, 0u);
}

}  // namespace
}  // namespace rio::enumerate
