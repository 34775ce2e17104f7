// Latencies computed by hand, queues, responses, faults; and repeated runs.
#include "fpga/sim/network.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

namespace rio::sim {
namespace {

constexpr uint64_t kForever = UINT64_MAX;
constexpr uint64_t kHopNs = 108;  // 8 on the link, 100 through the device

struct Arrival {
  uint64_t at_ns;
  uint32_t source;
  uint32_t destination;
  uint32_t tag;
  [[nodiscard]] bool operator==(const Arrival&) const = default;
};
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Arrival& arrival, std::ostream* out) {
  *out << "at " << arrival.at_ns << ": " << arrival.source << " to " << arrival.destination
       << ", tag " << arrival.tag;
}

/// Writes down what arrives, and answers requests if it is told to.
struct Nodes {
  bool answers = false;
  std::vector<Arrival> arrivals;
  std::vector<Arrival> timers;  // source: node; destination: word
  std::vector<Packet> packets;

  void deliver(NetworkBase& network, const Packet& packet) {
    arrivals.push_back({network.now(), packet.source, packet.destination, packet.tag});
    packets.push_back(packet);
    if (answers && packet.kind == kRequest) {
      Packet answer = packet;
      answer.source = packet.destination;
      answer.destination = packet.source;
      answer.kind = kResponse;
      network.send(answer);
    }
  }
  void expire(NetworkBase& network, const NodeTimer& timer) {
    timers.push_back({network.now(), timer.node, timer.word, timer.tag});
    network.send({.source = timer.node, .destination = timer.word, .tag = timer.tag});
  }
};

class NetworkTest : public testing::Test {
 protected:
  void make(const std::string& text, const NetworkSettings& settings = {}) {
    NetworkTopology topology;
    std::string error;
    ASSERT_EQ(NetworkTopology::create(text, &topology, &error), 0) << error;
    const bool answers = nodes_.answers;
    nodes_ = {};
    nodes_.answers = answers;
    ASSERT_EQ(Network<Nodes>::create(std::move(topology), settings, nodes_, &network_, &error), 0)
        << error;
  }
  [[nodiscard]] uint32_t link(uint32_t from, uint32_t toward) const {
    return network_->topology().next_link(from, toward);
  }
  void send(uint32_t source, uint32_t destination, uint32_t tag) {
    network_->send({.source = source, .destination = destination, .tag = tag});
  }

  Nodes nodes_;
  std::unique_ptr<Network<Nodes>> network_;
};

using Arrivals = std::vector<Arrival>;

TEST_F(NetworkTest, NHopsTakeNTimesLinkAndDevice) {
  for (const char* const text : {"torus:8x4x4", "mesh:5x5", "fat-tree:3x3"}) {
    SCOPED_TRACE(text);
    make(text);
    uint64_t hops = 0;
    for (uint32_t destination = 0; destination < network_->topology().nodes(); ++destination) {
      const uint64_t start_ns = network_->now();
      const uint64_t hops_before = network_->counters().hops;
      send(0, destination, destination);
      network_->run(kForever);
      hops = network_->counters().hops - hops_before;
      ASSERT_EQ(nodes_.arrivals.size(), destination + 1);
      ASSERT_EQ(nodes_.arrivals.back(),
                (Arrival{start_ns + hops * kHopNs, 0, destination, destination}));
    }
    EXPECT_GT(hops, 0u);
  }
}

TEST_F(NetworkTest, APacketArrivesWhole) {
  make("torus:4");
  network_->send({.source = 3,
                  .destination = 1,
                  .tag = 0xFFFFFFFF,
                  .info = 0xABCD,
                  .len_bytes = 0xFFFE,
                  .kind = kPacketKindMax});
  network_->run(kForever);
  ASSERT_EQ(nodes_.packets.size(), 1u);
  const Packet& packet = nodes_.packets[0];
  EXPECT_EQ(packet.source, 3u);
  EXPECT_EQ(packet.destination, 1u);
  EXPECT_EQ(packet.tag, 0xFFFFFFFF);
  EXPECT_EQ(packet.info, 0xABCD);
  EXPECT_EQ(packet.len_bytes, 0xFFFE);
  EXPECT_EQ(packet.kind, kPacketKindMax);
}

TEST_F(NetworkTest, PacketsOnOneLinkQueue) {
  make("mesh:4");
  send(0, 3, 1);
  send(0, 1, 2);
  send(0, 3, 3);
  network_->run(kForever);
  // The second hops of 1 and 3 are apart by more than a packet, so they do not wait again.
  EXPECT_EQ(nodes_.arrivals,
            (Arrivals{{kHopNs + 8, 0, 1, 2}, {3 * kHopNs, 0, 3, 1}, {3 * kHopNs + 16, 0, 3, 3}}));
  EXPECT_EQ(network_->links().sent(link(0, 3)), 3u);
  EXPECT_EQ(network_->links().longest_wait_ns(link(0, 3)), 16u);
  EXPECT_EQ(network_->links().longest_queue(link(0, 3), 0), 2u);
  EXPECT_EQ(network_->links().busiest(), link(0, 3));
  EXPECT_EQ(network_->links().sent(link(2, 3)), 2u);
  EXPECT_EQ(network_->links().longest_wait_ns(link(2, 3)), 0u);
}

TEST_F(NetworkTest, TwoWaysMeetOnALinkInOrderOfArrival) {
  // 0 and 2 both send over 1 to 4: the first hops end at one time, and the packet sent first goes
  // on.
  make("mesh:3x2");
  send(2, 4, 1);
  send(0, 4, 2);
  network_->run(kForever);
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{2 * kHopNs, 2, 4, 1}, {2 * kHopNs + 8, 0, 4, 2}}));
}

TEST_F(NetworkTest, ResponsesTakeTheSameLinks) {
  nodes_.answers = true;
  make("mesh:3");
  send(0, 2, 1);
  send(2, 0, 2);
  network_->run(kForever);
  // Each response finds its link idle: the other request has left it long ago.
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{2 * kHopNs, 0, 2, 1},
                                       {2 * kHopNs, 2, 0, 2},
                                       {4 * kHopNs, 2, 0, 1},
                                       {4 * kHopNs, 0, 2, 2}}));
  EXPECT_EQ(network_->links().sent(link(0, 2)), 2u);
  EXPECT_EQ(nodes_.packets[2].kind, kResponse);
  // A request that is sent with a response waits for it.
  network_->set_timer(10'000, {.node = 2, .tag = 9, .word = 0});
  network_->set_timer(10'000 - 2 * kHopNs, {.node = 0, .tag = 8, .word = 2});
  network_->run(kForever);
  EXPECT_EQ(network_->links().longest_wait_ns(link(2, 0)), 8u);
}

TEST_F(NetworkTest, APacketToItselfArrivesNow) {
  make("torus:1");
  network_->set_timer(50, {.node = 0, .tag = 4, .word = 0});
  network_->run(kForever);
  EXPECT_EQ(nodes_.timers, (Arrivals{{50, 0, 0, 4}}));
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{50, 0, 0, 4}}));
  EXPECT_EQ(network_->counters().hops, 0u);
  EXPECT_EQ(network_->counters().timers, 1u);
}

TEST_F(NetworkTest, ClassesOfADimension) {
  NetworkSettings settings;
  settings.classes = {{.serialisation_ns = 0, .ps_per_byte = 1000, .hop_ns = 10},
                      {.serialisation_ns = 3, .ps_per_byte = 0, .hop_ns = 1000}};
  make("torus:4x4", settings);
  network_->send({.source = 0, .destination = 5, .len_bytes = 256});
  network_->run(kForever);
  ASSERT_EQ(nodes_.arrivals.size(), 1u);
  EXPECT_EQ(nodes_.arrivals[0].at_ns, 256u + 10 + 3 + 1000);
}

TEST_F(NetworkTest, RunStopsAtItsLimit) {
  make("mesh:5");
  send(0, 4, 1);
  EXPECT_EQ(network_->run(4 * kHopNs - 1), 3u);
  EXPECT_EQ(nodes_.arrivals, Arrivals{});
  EXPECT_EQ(network_->events(), 1u);
  EXPECT_EQ(network_->run(4 * kHopNs), 1u);
  EXPECT_EQ(nodes_.arrivals.size(), 1u);
  EXPECT_EQ(network_->events(), 0u);
}

TEST_F(NetworkTest, AChosenPacketIsLost) {
  make("mesh:3");
  network_->lose_packet(link(1, 2), 1);
  for (uint32_t tag = 0; tag < 3; ++tag) {
    send(0, 2, tag);
  }
  network_->run(kForever);
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{2 * kHopNs, 0, 2, 0}, {2 * kHopNs + 16, 0, 2, 2}}));
  EXPECT_EQ(network_->counters().lost, 1u);
  EXPECT_EQ(network_->counters().delivered, 2u);
  EXPECT_EQ(network_->links().sent(link(1, 2)), 3u) << "the lost one was on the link";
}

TEST_F(NetworkTest, PacketsAreLostByChance) {
  NetworkSettings settings;
  settings.classes[0].loss_rate = 0.25;
  make("mesh:2", settings);
  constexpr uint32_t kPackets = 10'000;
  for (uint32_t tag = 0; tag < kPackets; ++tag) {
    send(0, 1, tag);
  }
  network_->run(kForever);
  const NetworkCounters& counters = network_->counters();
  EXPECT_EQ(counters.sent, kPackets);
  EXPECT_EQ(counters.lost + counters.delivered, kPackets);
  // Six standard deviations.
  EXPECT_NEAR(static_cast<double>(counters.lost), 0.25 * kPackets, 260.0);
  const Arrivals first = nodes_.arrivals;
  settings.seed = 2;
  make("mesh:2", settings);
  for (uint32_t tag = 0; tag < kPackets; ++tag) {
    send(0, 1, tag);
  }
  network_->run(kForever);
  EXPECT_NE(nodes_.arrivals, first);
}

TEST_F(NetworkTest, ANodeThatDiesAndComesBack) {
  make("mesh:3");
  network_->schedule({150, FaultKind::kDeviceDown, 1});
  network_->schedule({1000, FaultKind::kDeviceUp, 1});
  send(0, 2, 1);                                               // past the node before it dies
  network_->set_timer(100, {.node = 0, .tag = 2, .word = 2});  // on its way to it as it dies
  network_->set_timer(300, {.node = 0, .tag = 3, .word = 2});  // finds the link down
  network_->set_timer(500, {.node = 1, .tag = 4, .word = 2});  // the node's own timer
  network_->set_timer(2000, {.node = 0, .tag = 5, .word = 2});
  network_->set_timer(2000, {.node = 1, .tag = 6, .word = 1});
  network_->run(500);
  EXPECT_FALSE(network_->is_up(1));
  EXPECT_TRUE(network_->is_up(0));
  network_->run(kForever);
  EXPECT_TRUE(network_->is_up(1));
  EXPECT_EQ(nodes_.timers,
            (Arrivals{{100, 0, 2, 2}, {300, 0, 2, 3}, {2000, 0, 2, 5}, {2000, 1, 1, 6}}));
  // The first packet was still on the dead node's link to 2 at 150, so it is lost with the node.
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{2000, 1, 1, 6}, {2000 + 2 * kHopNs, 0, 2, 5}}));
  EXPECT_EQ(network_->counters().dropped, 3u);
}

TEST_F(NetworkTest, ADeadNodeReceivesNothingFromItself) {
  make("torus:1");
  network_->schedule({0, FaultKind::kDeviceDown, 0});
  send(0, 0, 1);
  network_->run(kForever);
  EXPECT_EQ(nodes_.arrivals, Arrivals{});
  EXPECT_EQ(network_->counters().dropped, 1u);
}

TEST_F(NetworkTest, ALinkThatIsCutOneWay) {
  make("mesh:3");
  network_->schedule({0, FaultKind::kLinkDown, link(1, 2)});
  network_->schedule({500, FaultKind::kLinkUp, link(1, 2)});
  send(0, 2, 1);
  send(2, 0, 2);
  network_->set_timer(500, {.node = 0, .tag = 3, .word = 2});
  network_->run(kForever);
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{2 * kHopNs, 2, 0, 2}, {500 + 2 * kHopNs, 0, 2, 3}}));
  EXPECT_EQ(network_->counters().dropped, 1u);
}

TEST_F(NetworkTest, ASwitchOfAFatTreeDies) {
  make("fat-tree:2x2");
  // Nodes 0 and 1 are at the first switch: device 4.
  network_->schedule({0, FaultKind::kDeviceDown, 4});
  network_->run(0);
  send(0, 1, 1);
  send(2, 0, 2);
  send(2, 3, 3);
  network_->run(kForever);
  // The packet to 0 went before it on the link of node 2.
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{2 * kHopNs + 8, 2, 3, 3}}));
  EXPECT_EQ(network_->counters().dropped, 2u);
}

/// Sends each packet on to a random node, a number of times.
struct Travellers {
  base::Random random{17};
  uint64_t checksum = 0;

  void deliver(NetworkBase& network, const Packet& packet) {
    checksum = checksum * 31 + network.now() + packet.tag;
    Packet next = packet;
    next.source = packet.destination;
    next.destination = random.below(network.topology().nodes());
    if (++next.info < 100) {
      network.send(next);
    }
  }
  void expire(NetworkBase& /*network*/, const NodeTimer& /*timer*/) {}
};

struct Outcome {
  uint64_t checksum;
  uint64_t end_ns;
  NetworkCounters counters;
};

[[nodiscard]] Outcome travel(const char* text, uint64_t seed, uint64_t step_ns) {
  NetworkTopology topology;
  std::string error;
  EXPECT_EQ(NetworkTopology::create(text, &topology, &error), 0) << error;
  const auto faults = random_faults(topology, FaultKind::kLinkDown, 3, 5'000, 20'000, seed);
  NetworkSettings settings;
  settings.classes[0].loss_rate = 1e-4;
  settings.seed = seed;
  Travellers travellers;
  std::unique_ptr<Network<Travellers>> network;
  EXPECT_EQ(Network<Travellers>::create(topology, settings, travellers, &network, &error), 0)
      << error;
  for (const NetworkFault& fault : faults) {
    network->schedule(fault);
  }
  for (uint32_t node = 0; node < topology.nodes(); ++node) {
    for (uint32_t i = 0; i < 10; ++i) {
      network->send({.source = node, .destination = (node + i) % topology.nodes(), .tag = node});
    }
  }
  for (uint64_t until_ns = 0; network->events() != 0; until_ns += step_ns) {
    network->run(until_ns);
  }
  return {travellers.checksum, network->now(), network->counters()};
}

TEST_F(NetworkTest, TheNextEventsAreThoseOfOneTime) {
  make("mesh:3");
  send(0, 1, 1);
  send(2, 1, 2);
  send(0, 1, 3);
  EXPECT_EQ(network_->run_next(kHopNs - 1), 0u);
  EXPECT_EQ(network_->run_next(kForever), 2u);  // one from each side
  EXPECT_EQ(network_->now(), kHopNs);
  EXPECT_EQ(network_->run_next(kForever), 1u);
  EXPECT_EQ(nodes_.arrivals, (Arrivals{{kHopNs, 0, 1, 1}, {kHopNs, 2, 1, 2}, {116, 0, 1, 3}}));
  EXPECT_EQ(network_->run_next(kForever), 0u);
}

TEST(Network, ARunRepeats) {
  for (const char* const text : {"torus:5x4x3", "mesh:7x7", "fat-tree:4x3"}) {
    SCOPED_TRACE(text);
    const Outcome first = travel(text, 1, 1'000'000'000);
    EXPECT_GT(first.counters.lost, 0u);
    EXPECT_GT(first.counters.dropped, 0u);
    const uint64_t ended = first.counters.lost + first.counters.dropped + first.counters.delivered;
    EXPECT_EQ(ended, first.counters.sent) << "every packet ends in one way";
    for (const uint64_t step_ns : {1'000'000'000, 1'000, 7}) {
      const Outcome again = travel(text, 1, step_ns);
      EXPECT_EQ(again.checksum, first.checksum);
      EXPECT_EQ(again.counters.hops, first.counters.hops);
      EXPECT_EQ(again.counters.lost, first.counters.lost);
      EXPECT_EQ(again.counters.dropped, first.counters.dropped);
    }
    EXPECT_NE(travel(text, 2, 1'000'000'000).checksum, first.checksum);
  }
}

TEST(Network, AFilesLossIsThePacketsOnTheWay) {
  const std::string path =
      testing::TempDir() + "sim_network_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << R"({"switches": [{"name": "s"}, {"name": "t"}],
    "endpoints": [{"name": "a"}, {"name": "b"}],
    "links": [["a", "s:0"], ["s:1", "t:1"], ["b", "t:0"]], "loss": {"seed": 5, "rate": 0.5}})";
  NetworkTopology topology;
  std::string error;
  ASSERT_EQ(NetworkTopology::create("file:" + path, &topology, &error), 0) << error;
  std::filesystem::remove(path);
  Nodes nodes;
  std::unique_ptr<Network<Nodes>> network;
  ASSERT_EQ(Network<Nodes>::create(topology, {}, nodes, &network, &error), 0) << error;
  for (uint32_t i = 0; i < 1000; ++i) {
    network->send({.source = 0, .destination = 1, .tag = i});
  }
  network->run(kForever);
  // Six standard deviations. Only a's link loses packets, however many links follow.
  EXPECT_NEAR(static_cast<double>(network->counters().delivered), 500.0, 95.0);
  EXPECT_EQ(network->links().sent(topology.next_link(2, 1)), network->counters().delivered);
}

TEST(Network, MistakesAreNamed) {
  NetworkTopology topology;
  std::string error;
  ASSERT_EQ(NetworkTopology::create("torus:4x4", &topology, &error), 0) << error;
  Nodes nodes;
  std::unique_ptr<Network<Nodes>> network;
  NetworkSettings settings;
  settings.classes.resize(3);
  EXPECT_EQ(Network<Nodes>::create(topology, settings, nodes, &network, &error), -EINVAL);
  EXPECT_NE(error.find("the topology's 2"), std::string::npos) << error;
  settings.classes.resize(2);
  settings.classes[1].loss_rate = 2.0;
  EXPECT_EQ(Network<Nodes>::create(topology, settings, nodes, &network, &error), -EINVAL);
  EXPECT_NE(error.find("class 1"), std::string::npos) << error;
  EXPECT_EQ(network, nullptr);
}

TEST(Network, AMillionNodesFitIntoLittleMemory) {
  NetworkTopology topology;
  std::string error;
  ASSERT_EQ(NetworkTopology::create("torus:100x100x100", &topology, &error), 0) << error;
  Nodes nodes;
  std::unique_ptr<Network<Nodes>> network;
  ASSERT_EQ(Network<Nodes>::create(std::move(topology), {}, nodes, &network, &error), 0) << error;
  network->send({.source = 0, .destination = 999'999, .tag = 7});
  network->run(kForever);
  EXPECT_EQ(nodes.arrivals, (Arrivals{{3 * kHopNs, 0, 999'999, 7}}));
  EXPECT_LE(network->bytes(), 100u << 20);
}

}  // namespace
}  // namespace rio::sim
