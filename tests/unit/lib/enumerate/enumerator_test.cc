// The enumerator against devices that lie, fall silent, or belong to other hosts.
#include "lib/enumerate/enumerator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lib/enumerate/csr.hpp"
#include "tests/unit/lib/enumerate/fake_fabric.hpp"

namespace rio::enumerate {
namespace {

constexpr uint32_t kHost = 0;

/// A card, a 4-port switch that is entered by port 0, and endpoints at ports 1 and 2.
struct Small : FakeFabric {
  Small() {
    plug(own, 0, hub, 0);
    plug(hub, 1, first, 0);
    plug(hub, 2, second, 0);
  }
  FakeDevice* hub = make(0x5555000E, 4);
  FakeDevice* first = make(0, 0);
  FakeDevice* second = make(0, 0);
};

int enumerate(FakeFabric& fabric, FabricMap* map, EnumerateOptions options = {}) {
  return Enumerator(fabric, options).run(map);
}

bool has_problem(const FabricMap& map, const std::string& kind, const std::string& where,
                 const std::string& what = "") {
  return std::any_of(map.problems.begin(), map.problems.end(), [&](const Problem& problem) {
    return problem.kind == kind && problem.where == where &&
           problem.what.find(what) != std::string::npos && !problem.remedy.empty();
  });
}

void expect_unlocked(const FakeFabric& fabric) {
  for (const auto& device : fabric.devices) {
    EXPECT_NE(device->words[Csr::kHostLock], kHost);
  }
}

TEST(Enumerator, FindsEachDevice) {
  Small fabric;
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 2u);
  EXPECT_EQ(map.switches(), 1u);
  // A switch without an LP-Serial block cannot say that nothing is connected to its port 3.
  EXPECT_EQ(map.problems.size(), 1u);
  EXPECT_TRUE(has_problem(map, "silent", "switch 1 port 3"));
  EXPECT_EQ(fabric.hub->routes[0], 0u);
  EXPECT_EQ(fabric.hub->routes[1], 1u);
  EXPECT_EQ(fabric.hub->routes[2], 2u);
  EXPECT_EQ(fabric.hub->routes[3], kNoRoute);
  EXPECT_EQ(fabric.hub->routes[kProbeId], kNoRoute) << "the exploration leaves no route";
  EXPECT_EQ(fabric.first->words[Csr::kBaseDeviceId], 1u << 16 | 0xFFFF);
  EXPECT_EQ(fabric.second->words[Csr::kBaseDeviceId], 2u << 16 | 0xFFFF);
  expect_unlocked(fabric);
}

TEST(Enumerator, WideDestIds) {
  Small fabric;
  FabricMap map;
  EnumerateOptions options;
  options.large = true;
  options.host_id = 1;
  ASSERT_EQ(enumerate(fabric, &map, options), 0);
  EXPECT_EQ(fabric.first->words[Csr::kBaseDeviceId], 0x00FF0000u);
  EXPECT_EQ(fabric.second->words[Csr::kBaseDeviceId], 0x00FF0002u) << "1 is the card's";
}

TEST(Enumerator, NothingThere) {
  FakeFabric fabric;
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.nodes.size(), 1u);
  EXPECT_TRUE(has_problem(map, "silent", "the link of this card"));
}

TEST(Enumerator, OneEndpointAndNoSwitch) {
  FakeFabric fabric;
  FakeDevice* peer = fabric.make(0, 0);
  FakeFabric::plug(fabric.own, 0, peer, 0);
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 1u);
  EXPECT_TRUE(map.problems.empty());
}

TEST(Enumerator, ACardThatHearsItself) {
  FakeFabric fabric;
  fabric.own->peers[0] = fabric.own;
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.nodes.size(), 1u);
  EXPECT_TRUE(has_problem(map, "loop", "this card"));
  expect_unlocked(fabric);
}

TEST(Enumerator, LockedDevicesAreNamedAndLeftAlone) {
  Small fabric;
  fabric.first->words[Csr::kHostLock] = 7;
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 1u);
  EXPECT_TRUE(has_problem(map, "locked", "switch 1 port 1", "host 7"));
  EXPECT_EQ(fabric.first->words[Csr::kHostLock], 7u);
  EXPECT_EQ(fabric.first->toggles, 0u);
  EXPECT_EQ(fabric.first->words.count(Csr::kComponentTag), 0u);
}

uint32_t dest_id(const FakeDevice* device) {
  return device->words.at(Csr::kBaseDeviceId) >> 16;
}

/// A host's lock names its destID. It is not given to a device, whether the lock is found before
/// or after that destID was given away.
TEST(Enumerator, DestIdsOfOtherHostsAreNotGivenAway) {
  for (const uint32_t other : {1u, 2u}) {
    for (const bool steal : {false, true}) {
      Small fabric;
      FakeDevice* const third = fabric.make(0, 0);
      FakeFabric::plug(fabric.hub, 3, third, 0);
      for (FakeDevice* const locked : {fabric.first, third}) {
        SCOPED_TRACE(std::to_string(other) + (locked == third ? " last" : " first"));
        fabric.first->words[Csr::kHostLock] = kUnlocked;
        third->words[Csr::kHostLock] = kUnlocked;
        locked->words[Csr::kHostLock] = other;
        FabricMap map;
        EnumerateOptions options;
        options.steal = steal;
        ASSERT_EQ(enumerate(fabric, &map, options), 0);
        ASSERT_EQ(map.endpoints(), steal ? 3u : 2u);
        for (size_t i = 1; i < map.nodes.size(); ++i) {
          if (!map.nodes[i].is_switch) {
            EXPECT_NE(map.nodes[i].dest_id, other);
            EXPECT_NE(map.nodes[i].dest_id, kNoDestId);
          }
        }
        for (const FakeDevice* const device : {fabric.first, fabric.second, third}) {
          EXPECT_TRUE(device == locked || dest_id(device) != other);
        }
        EXPECT_EQ(fabric.hub->routes[other], kNoRoute);
        EXPECT_EQ(fabric.hub->routes[dest_id(fabric.second)], 2u);
      }
    }
  }
}

/// An endpoint that another host holds has a destID, which that host may have given.
TEST(Enumerator, DestIdsThatOthersGaveAreNotGivenAway) {
  Small fabric;
  fabric.second->words[Csr::kHostLock] = 7;
  fabric.second->words[Csr::kBaseDeviceId] = 1u << 16 | 1;
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(dest_id(fabric.first), 2u);
  EXPECT_EQ(dest_id(fabric.second), 1u);
}

/// A host's destID is not given away even if no other is left.
TEST(Enumerator, NoDestIdIsLeftButAHosts) {
  Small fabric;
  FabricMap map;
  EnumerateOptions options;
  options.host_id = 3;
  constexpr uint32_t kAll = 254;  // small systems have destIDs of 8 bits
  fabric.own->words[Csr::kHostLock] = kUnlocked;
  fabric.second->words[Csr::kHostLock] = 0;
  for (uint32_t port = 3; port < 3 + kAll; ++port) {
    FakeFabric::plug(fabric.hub, port, fabric.make(0, 0), 0);
  }
  fabric.hub->words[Csr::kSwitchPort] = 255 << 8;
  ASSERT_EQ(enumerate(fabric, &map, options), 0);
  EXPECT_NE(dest_id(fabric.first), 0u);
  for (size_t i = 1; i < map.nodes.size(); ++i) {
    EXPECT_TRUE(map.nodes[i].is_switch || map.nodes[i].dest_id != 0);
  }
}

TEST(Enumerator, StealsWhenTold) {
  Small fabric;
  fabric.first->words[Csr::kHostLock] = 7;
  fabric.hub->words[Csr::kHostLock] = 8;
  fabric.own->words[Csr::kHostLock] = 9;
  FabricMap map;
  EnumerateOptions options;
  options.steal = true;
  ASSERT_EQ(enumerate(fabric, &map, options), 0);
  EXPECT_EQ(map.endpoints(), 2u);
  for (const auto& device : fabric.devices) {
    EXPECT_EQ(device->words[Csr::kHostLock], kUnlocked);
  }
}

TEST(Enumerator, AnotherHostsCard) {
  Small fabric;
  fabric.own->words[Csr::kHostLock] = 9;
  FabricMap map;
  EXPECT_EQ(enumerate(fabric, &map), -EBUSY);
  EXPECT_TRUE(has_problem(map, "locked", "this card", "host 9"));
  EXPECT_EQ(fabric.accesses, 0u);
}

TEST(Enumerator, AnswersThatNeverCome) {
  Small fabric;
  fabric.first->loses = [](uint32_t) { return true; };
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 1u);
  EXPECT_TRUE(has_problem(map, "silent", "switch 1 port 1"));
}

TEST(Enumerator, ADeviceThatStopsAnswering) {
  Small fabric;
  fabric.first->loses = [&](uint32_t offset) { return offset == Csr::kComponentTag; };
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_TRUE(has_problem(map, "lost", "switch 1 port 1"));
  EXPECT_EQ(map.endpoints(), 1u);
  expect_unlocked(fabric);
}

// A lock whose answer is lost may have been taken: writing the lock again would release it.
TEST(Enumerator, LostAnswersOfTheLock) {
  for (const uint32_t lost : {1u, 2u}) {
    Small fabric;
    uint32_t left = lost;
    fabric.first->loses_write = [&](uint32_t offset) {
      return offset == Csr::kHostLock && left > 0 && left-- > 0;
    };
    FabricMap map;
    ASSERT_EQ(enumerate(fabric, &map), 0);
    EXPECT_EQ(map.endpoints(), 2u) << lost;
    EXPECT_EQ(left, 0u);
    EXPECT_EQ(fabric.first->toggles, 2u) << "locked once, opened once";
    EXPECT_EQ(fabric.first->words[Csr::kHostLock], kUnlocked);
  }
}

TEST(Enumerator, IdentitiesThatChange) {
  Small fabric;
  uint32_t asked = 0;
  fabric.first->lie = [&](uint32_t offset) -> std::optional<uint32_t> {
    return offset == Csr::kDeviceIdentity ? std::optional<uint32_t>(0x10000 + ++asked)
                                          : std::nullopt;
  };
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 1u);
  EXPECT_TRUE(has_problem(map, "lying", "switch 1 port 1", "identity changes"));
  expect_unlocked(fabric);
}

TEST(Enumerator, RegistersThatDoNotKeep) {
  const struct {
    uint32_t offset;
    const char* what;
  } cases[] = {{Csr::kHostLock, "host lock"},
               {Csr::kComponentTag, "component tag"},
               {Csr::kBaseDeviceId, "destID"}};
  for (const auto& one : cases) {
    Small fabric;
    fabric.first->keeps = [&](uint32_t offset) { return offset != one.offset; };
    FabricMap map;
    ASSERT_EQ(enumerate(fabric, &map), 0);
    EXPECT_EQ(map.endpoints(), 1u);
    EXPECT_TRUE(has_problem(map, "lying", "switch 1 port 1", one.what));
    expect_unlocked(fabric);
  }
}

TEST(Enumerator, SwitchesThatLie) {
  const struct {
    uint32_t offset;
    uint32_t value;
    const char* what;
  } cases[] = {{Csr::kSwitchPort, 4u << 8 | 9, "entered by port 9"},
               {Csr::kSwitchPort, 0, "has 0 ports"},
               {Csr::kTableLimit, 15, "16 destIDs"},
               {Csr::kRoutePort, 3, "route table"},
               {Csr::kDeviceIdentity, 0xFFFFFFFF, "all ones"},
               {Csr::kDeviceIdentity, 0, "reads 0"}};
  for (const auto& one : cases) {
    Small fabric;
    fabric.hub->lie = [&](uint32_t offset) {
      return offset == one.offset ? std::optional<uint32_t>(one.value) : std::nullopt;
    };
    FabricMap map;
    ASSERT_EQ(enumerate(fabric, &map), 0);
    EXPECT_EQ(map.nodes.size(), 1u) << one.what;
    EXPECT_TRUE(has_problem(map, "lying", "the link of this card", one.what));
    expect_unlocked(fabric);
  }
}

TEST(Enumerator, ASwitchThatClaims255Ports) {
  Small fabric;
  fabric.hub->words[Csr::kSwitchPort] = 255u << 8;
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 2u);
  EXPECT_EQ(map.problems.size(), 255u - 3) << "each names its port";
  EXPECT_LT(fabric.accesses, 5000u);
  expect_unlocked(fabric);
}

// Each of 255 ports leads back into the same switch.
TEST(Enumerator, ASwitchThatIsItsOwnNeighbour) {
  Small fabric;
  fabric.hub->words[Csr::kSwitchPort] = 255u << 8;
  for (uint32_t port = 3; port < 255; ++port) {
    fabric.hub->peers[port] = fabric.hub;
  }
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.switches(), 1u);
  EXPECT_EQ(map.endpoints(), 2u);
  EXPECT_LT(fabric.accesses, 10000u);
  expect_unlocked(fabric);
}

// Each port leads to yet another switch.
TEST(Enumerator, AFabricWithoutEnd) {
  FakeFabric fabric;
  fabric.grow = [&](FakeDevice* device, uint32_t port) {
    FakeDevice* more = fabric.make(0x5555000E, 8);
    FakeFabric::plug(device, port, more, 0);
    return more;
  };
  FabricMap map;
  EnumerateOptions options;
  options.nodes = 100;
  EXPECT_EQ(enumerate(fabric, &map, options), -ETIME);
  EXPECT_TRUE(has_problem(map, "limit", "the fabric"));
  EXPECT_EQ(map.nodes.size(), 101u);
  expect_unlocked(fabric);
  options.nodes = 4096;
  for (uint32_t accesses = 3000; accesses < 3040; ++accesses) {  // cut off at an arbitrary access
    options.limits.accesses = accesses;
    EXPECT_EQ(enumerate(fabric, &map, options), -ETIME);
    expect_unlocked(fabric);
  }
}

TEST(Enumerator, ExtendedFeaturesThatGoInCircles) {
  Small fabric;
  fabric.first->words[Csr::kFeatures] |= kExtendedFeatures;
  fabric.first->words[Csr::kAssemblyInformation] = 0x100;
  fabric.first->words[0x100] = 0x200u << 16 | 0x1234;
  fabric.first->words[0x200] = 0x100u << 16 | 0x4321;
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 2u);
}

// A run that was cut off has left locks and tags behind; its tags must not be mistaken for this
// run's.
TEST(Enumerator, LocksOfARunThatWasCutOff) {
  Small fabric;
  for (FakeDevice* device : {fabric.hub, fabric.first, fabric.second}) {
    device->words[Csr::kHostLock] = kHost;
    device->words[Csr::kComponentTag] =
        2;  // the tag that this run gives to the first device that it finds
  }
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 2u);
  EXPECT_EQ(map.switches(), 1u);
  expect_unlocked(fabric);
}

// The user may interrupt a run at any access.
TEST(Enumerator, AnInterruptedRunLeavesNoLocks) {
  bool whole = false;
  for (uint32_t moment = 0; !whole; ++moment) {
    Small fabric;
    volatile std::sig_atomic_t stop = moment == 0 ? 1 : 0;
    uint32_t accesses = 0;
    for (const auto& device : fabric.devices) {
      device->loses = [&](uint32_t) {
        stop = ++accesses == moment ? 1 : stop;
        return false;
      };
    }
    EnumerateOptions options;
    options.limits.stop = &stop;
    FabricMap map;
    const int rc = enumerate(fabric, &map, options);
    expect_unlocked(fabric);
    EXPECT_EQ(map.problems.empty() ? "" : map.problems.back().kind,
              rc == -ETIME ? "limit" : "silent")
        << moment;
    whole = stop == 0;
    EXPECT_TRUE(!whole || rc == 0) << moment;
  }
}

TEST(Enumerator, NoDestIdLeft) {
  FakeFabric fabric;
  FakeDevice* from = fabric.own;
  for (uint32_t i = 0; i < 5; ++i) {  // a chain of five switches, 60 endpoints at each
    FakeDevice* hub = fabric.make(0x5555000E, 62);
    FakeFabric::plug(from, from == fabric.own ? 0 : 61, hub, 0);
    for (uint32_t port = 1; port < 61; ++port) {
      FakeFabric::plug(hub, port, fabric.make(0, 0), 0);
    }
    from = hub;
  }
  FabricMap map;
  ASSERT_EQ(enumerate(fabric, &map), 0);
  EXPECT_EQ(map.endpoints(), 254u) << "0 to 254, but for the card's own";
  EXPECT_TRUE(std::any_of(map.problems.begin(), map.problems.end(),
                          [](const Problem& problem) { return problem.kind == "ids"; }));
  expect_unlocked(fabric);
}

}  // namespace
}  // namespace rio::enumerate
