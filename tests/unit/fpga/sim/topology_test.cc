// Every route of small networks, their diameters, and texts that name no topology.
#include "fpga/sim/topology.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/random.hpp"

namespace rio::sim {
namespace {

using Coordinates = std::vector<uint32_t>;

[[nodiscard]] NetworkTopology make(const std::string& text) {
  NetworkTopology topology;
  std::string error;
  EXPECT_EQ(NetworkTopology::create(text, &topology, &error), 0) << error;
  return topology;
}

/// Hops of the route between two nodes; more than there are links: it does not arrive.
[[nodiscard]] uint32_t route_hops(const NetworkTopology& topology, uint32_t source,
                                  uint32_t destination) {
  uint32_t at = source;
  for (uint32_t hops = 0; hops <= topology.links(); ++hops) {
    const uint32_t link = topology.next_link(at, destination);
    if (link == kNoLink) {
      return at == destination ? hops : UINT32_MAX;
    }
    EXPECT_TRUE(topology.has_link(link));
    EXPECT_EQ(topology.from(link), at);
    at = topology.to(link);
  }
  return UINT32_MAX;
}

/// Hops of the shortest routes from a device to all devices, by the links alone.
[[nodiscard]] std::vector<uint32_t> distances(const NetworkTopology& topology, uint32_t source) {
  std::vector<uint32_t> all(topology.devices(), UINT32_MAX);
  std::vector<uint32_t> found{source};
  all[source] = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const LinkRange out = topology.links_from(found[i]);
    for (uint32_t link = out.first; link < out.first + out.count; ++link) {
      const uint32_t to = topology.has_link(link) ? topology.to(link) : source;
      if (all[to] == UINT32_MAX) {
        all[to] = all[found[i]] + 1;
        found.push_back(to);
      }
    }
  }
  return all;
}

/// The route of each pair of nodes is as short as any; the longest of them is the diameter.
void expect_shortest_routes(const NetworkTopology& topology) {
  uint32_t longest = 0;
  for (uint32_t source = 0; source < topology.nodes(); ++source) {
    const std::vector<uint32_t> shortest = distances(topology, source);
    for (uint32_t destination = 0; destination < topology.nodes(); ++destination) {
      ASSERT_EQ(route_hops(topology, source, destination), shortest[destination])
          << source << " to " << destination;
      longest = std::max(longest, shortest[destination]);
    }
  }
  EXPECT_EQ(topology.diameter(), longest);
}

/// Each link has one in the other direction, and each device a range of its own.
void expect_pairs_of_links(const NetworkTopology& topology) {
  uint32_t seen = 0;
  for (uint32_t device = 0; device < topology.devices(); ++device) {
    const LinkRange out = topology.links_from(device);
    for (uint32_t link = out.first; link < out.first + out.count; ++link, ++seen) {
      ASSERT_LT(link, topology.links());
      ASSERT_EQ(topology.from(link), device);
      if (topology.has_link(link)) {
        const uint32_t back = topology.reverse(link);
        ASSERT_TRUE(topology.has_link(back)) << link;
        ASSERT_EQ(topology.from(back), topology.to(link)) << link;
        ASSERT_EQ(topology.to(back), device) << link;
        ASSERT_EQ(topology.reverse(back), link);
        if (!std::holds_alternative<FileFabric>(topology.shape())) {
          ASSERT_EQ(topology.link_class(back), topology.link_class(link));
        }
        ASSERT_LT(topology.link_class(link), topology.link_classes());
      }
    }
  }
  EXPECT_EQ(seen, topology.links());
}

TEST(NetworkTopology, RoutesOfSmallOnesAreShortest) {
  const struct {
    const char* text;
    uint32_t nodes;
    uint32_t devices;
    uint32_t diameter;
  } cases[] = {
      {"torus:1", 1, 1, 0},         {"torus:2", 2, 2, 1},         {"torus:5", 5, 5, 2},
      {"torus:8x4x4", 128, 128, 8}, {"torus:3x1x2x5", 30, 30, 4}, {"torus:2x2x2x2", 16, 16, 4},
      {"mesh:1", 1, 1, 0},          {"mesh:10x10", 100, 100, 18}, {"mesh:2x3x4", 24, 24, 6},
      {"fat-tree:2x1", 2, 3, 2},    {"fat-tree:4x2", 16, 24, 4},  {"fat-tree:3x3", 27, 54, 6},
      {"fat-tree:2x5", 32, 112, 10}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.text);
    const NetworkTopology topology = make(one.text);
    EXPECT_EQ(topology.nodes(), one.nodes);
    EXPECT_EQ(topology.devices(), one.devices);
    EXPECT_EQ(topology.diameter(), one.diameter);
    expect_shortest_routes(topology);
    expect_pairs_of_links(topology);
  }
}

TEST(NetworkTopology, LinksAreCounted) {
  const auto count = [](const NetworkTopology& topology) {
    uint32_t links = 0;
    for (uint32_t link = 0; link < topology.links(); ++link) {
      links += topology.has_link(link) ? 1 : 0;
    }
    return links;
  };
  EXPECT_EQ(count(make("torus:8x4x4")), 128u * 6);
  EXPECT_EQ(count(make("torus:2x3")), 6u * 3);
  EXPECT_EQ(count(make("torus:1x3")), 3u * 2);
  EXPECT_EQ(count(make("mesh:10x10")), 4u * 90);
  EXPECT_EQ(count(make("fat-tree:16x3")), 6u * 4096);
}

TEST(NetworkTopology, ATorusGoesTheShorterWayAndUpIfBothAreEqual) {
  const NetworkTopology topology = make("torus:8x4");
  EXPECT_EQ(topology.coordinates(13), (Coordinates{5, 1}));
  EXPECT_EQ(topology.to(topology.next_link(0, 4)), 1u);    // 4 either way: up
  EXPECT_EQ(topology.to(topology.next_link(0, 5)), 7u);    // 3 down, round the end
  EXPECT_EQ(topology.to(topology.next_link(6, 2)), 7u);    // 4 either way: up
  EXPECT_EQ(topology.to(topology.next_link(7, 9)), 0u);    // the first dimension goes first
  EXPECT_EQ(topology.to(topology.next_link(1, 25)), 25u);  // 1 down in the second
  EXPECT_EQ(topology.link_class(topology.next_link(1, 25)), 1u);
  EXPECT_EQ(topology.next_link(3, 3), kNoLink);
  const auto& grid = std::get<Grid>(topology.shape());
  EXPECT_TRUE(grid.wraps());
  EXPECT_EQ(grid.dimensions(), 2u);
  EXPECT_EQ(grid.length(1), 4u);
}

TEST(NetworkTopology, AFatTreeSpreadsNeighboursOverItsRoots) {
  // All nodes of one switch send to different nodes of another one: no link carries two of them.
  const NetworkTopology topology = make("fat-tree:4x3");
  std::vector<uint32_t> used(topology.links());
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint32_t at = i; at != 60 + i;) {
      const uint32_t link = topology.next_link(at, 60 + i);
      ++used[link];
      at = topology.to(link);
    }
  }
  EXPECT_EQ(*std::max_element(used.begin(), used.end()), 1u);
  EXPECT_EQ(topology.coordinates(27), (Coordinates{3, 2, 1}));
  EXPECT_EQ(topology.coordinates(64 + 17), (Coordinates{1, 1}));
}

TEST(NetworkTopology, AMillionNodesAreRouted) {
  base::Random random(5);
  for (const char* const text : {"torus:100x100x100", "mesh:1000x1000", "fat-tree:10x6"}) {
    const NetworkTopology topology = make(text);
    ASSERT_EQ(topology.nodes(), 1'000'000u);
    for (int i = 0; i < 1000; ++i) {
      const uint32_t source = random.below(topology.nodes());
      const uint32_t destination = random.below(topology.nodes());
      ASSERT_LE(route_hops(topology, source, destination), topology.diameter());
    }
  }
  EXPECT_EQ(make("torus:100x100x100").diameter(), 150u);
}

TEST(NetworkTopology, MistakesAreNamed) {
  const struct {
    const char* text;
    int rc;
    const char* names;
  } cases[] = {
      {"", -EINVAL, "no such kind"},
      {"ring:5", -EINVAL, "torus:8x4x4"},
      {"torus", -EINVAL, "no list of numbers"},
      {"torus:", -EINVAL, "no list of numbers"},
      {"torus:8x", -EINVAL, "'8x'"},
      {"torus:8xx4", -EINVAL, "no list of numbers"},
      {"torus:0x4", -EINVAL, "no list of numbers"},
      {"torus:0x4x4", -EINVAL, "no list of numbers"},
      {"torus:-8", -EINVAL, "no list of numbers"},
      {"mesh:4 x4", -EINVAL, "no list of numbers"},
      {"mesh:1x1x1x1x1x1x1x1x1", -EINVAL, "1 to 8 lengths"},
      {"mesh:99999999999", -EINVAL, "no list of numbers"},
      {"torus:4294967295x4294967295x4294967295", -E2BIG, "make it smaller"},
      {"torus:1000x1000x1000", -E2BIG, "44739242 nodes"},
      {"fat-tree:16", -EINVAL, "arity and levels"},
      {"fat-tree:16x3x2", -EINVAL, "arity and levels"},
      {"fat-tree:1x3", -EINVAL, "an arity of 2"},
      {"fat-tree:16x8", -E2BIG, "fewer levels"},
      {"fat-tree:2x4000000000", -E2BIG, "fewer levels"},
      {"file:/no/such/file", -ENOENT, "/no/such/file"},
  };
  for (const auto& one : cases) {
    NetworkTopology topology = make("torus:3");
    std::string error;
    EXPECT_EQ(NetworkTopology::create(one.text, &topology, &error), one.rc) << one.text;
    EXPECT_NE(error.find(one.names), std::string::npos) << one.text << ": " << error;
    EXPECT_EQ(topology.nodes(), 3u) << "set only on success";
  }
}

/// A topology file that lives as long as a test.
class NetworkTopologyFile : public testing::Test {
 protected:
  ~NetworkTopologyFile() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] int load(const std::string& json, NetworkTopology* out, std::string* error) {
    std::ofstream(path_) << json;
    return NetworkTopology::create("file:" + path_, out, error);
  }

  std::string path_ = testing::TempDir() + "sim_topology_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
                      std::to_string(::getpid()) + ".json";
};

TEST_F(NetworkTopologyFile, ShortestWaysByTheLowestPorts) {
  NetworkTopology topology;
  std::string error;
  // A triangle of switches with a double link; what is absent or silent is left out.
  ASSERT_EQ(load(R"({"switches": [{"name": "s"}, {"name": "t"}, {"name": "u"}],
                     "endpoints": [{"name": "a"}, {"name": "gone", "present": false},
                                   {"name": "b"}, {"name": "mute", "silent": true}, {"name": "c"}],
                     "links": [["a", "s:0"], ["b", "t:0"], ["c", "u:0"], ["gone", "s:7"],
                               ["mute", "t:7"], ["s:5", "t:5"], ["s:3", "t:4"], ["t:1", "u:1"],
                               ["u:2", "s:2"]],
                     "loss": {"seed": 3, "rate": 0.25}})",
                 &topology, &error),
            0)
      << error;
  EXPECT_EQ(topology.nodes(), 3u);
  EXPECT_EQ(topology.devices(), 6u);
  EXPECT_EQ(topology.links(), 14u);
  EXPECT_EQ(topology.diameter(), 3u);
  expect_shortest_routes(topology);
  expect_pairs_of_links(topology);
  const auto& file = std::get<FileFabric>(topology.shape());
  EXPECT_EQ(file.name(2), "c");
  EXPECT_EQ(file.name(4), "t");
  EXPECT_EQ(file.loss_seed(), 3u);
  EXPECT_EQ(file.loss_rate(), 0.25);
  // From s to t leads port 3, not port 5: a's link is number 0 of s, that of port 2 number 1.
  EXPECT_EQ(topology.next_link(3, 1), topology.links_from(3).first + 2);
}

TEST_F(NetworkTopologyFile, RoutesOfTheFileGoFirst) {
  const auto json = [](const char* route) {
    return std::string(R"({"switches": [{"name": "s", "routes": {"7": )") + route + R"(}},
                                        {"name": "t"}, {"name": "u"}],
                           "endpoints": [{"name": "a"}, {"name": "b", "dest_id": 7}],
                           "links": [["a", "s:0"], ["b", "t:0"], ["s:1", "t:1"], ["s:2", "u:0"],
                                     ["u:1", "t:2"]]})";
  };
  NetworkTopology topology;
  std::string error;
  ASSERT_EQ(load(json("1"), &topology, &error), 0) << error;
  EXPECT_EQ(route_hops(topology, 0, 1), 3u);
  ASSERT_EQ(load(json("2"), &topology, &error), 0) << error;
  EXPECT_EQ(route_hops(topology, 0, 1), 4u);
  EXPECT_EQ(route_hops(topology, 1, 0), 3u);
  EXPECT_EQ(topology.diameter(), 4u);
  EXPECT_EQ(load(json("0"), &topology, &error), -EINVAL);
  EXPECT_NE(error.find("from a to b goes in a circle"), std::string::npos) << error;
  EXPECT_EQ(load(json("5"), &topology, &error), -EINVAL);
  EXPECT_NE(error.find("port 5, which has no link"), std::string::npos) << error;
}

TEST_F(NetworkTopologyFile, MistakesAreNamed) {
  NetworkTopology topology;
  std::string error;
  EXPECT_EQ(load("{", &topology, &error), -EINVAL);
  EXPECT_NE(error.find("not JSON"), std::string::npos) << error;
  EXPECT_EQ(load("{}", &topology, &error), -EINVAL);
  EXPECT_NE(error.find("no endpoint"), std::string::npos) << error;
  EXPECT_EQ(load(R"({"endpoints": [{"name": "a"}, {"name": "b"}]})", &topology, &error), -EINVAL);
  EXPECT_NE(error.find("b does not reach a"), std::string::npos) << error;
  EXPECT_NE(error.find(path_), std::string::npos) << error;
}

}  // namespace
}  // namespace rio::sim
