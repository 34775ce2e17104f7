// Several queues of a port, and threads that poll them.
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_port.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kRss = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
constexpr uint16_t kQueues = 4;

/// A UDP datagram on IPv4 of a flow. @param index of the datagram in the flow.
Bytes datagram(const Port& from, const Port& to, uint32_t flow, uint32_t index,
               uint32_t length = 60) {
  Bytes bytes = frame_bytes(to.mac(), from.mac(), length, flow);
  std::fill(bytes.begin() + 12, bytes.begin() + 50, uint8_t{0});
  bytes[12] = 0x08;
  bytes[14] = 0x45;
  bytes[23] = 17;
  bytes[34] = static_cast<uint8_t>(flow);  // source port
  bytes[35] = static_cast<uint8_t>(flow >> 8);
  std::memcpy(bytes.data() + 42, &flow, 4);
  std::memcpy(bytes.data() + 46, &index, 4);
  return bytes;
}
uint32_t flow_of(const rte_mbuf* frame) {
  uint32_t flow = 0;
  std::memcpy(&flow, rte_pktmbuf_mtod(frame, const uint8_t*) + 42, 4);
  return flow;
}
uint32_t index_of(const rte_mbuf* frame) {
  uint32_t index = 0;
  std::memcpy(&index, rte_pktmbuf_mtod(frame, const uint8_t*) + 46, 4);
  return index;
}

class NetQueues : public testing::Test {
 protected:
  NetQueues() {
    while (!met_ && tries_++ < 1000) {
      // Doorbells are received only while queue 0 is polled.
      pair_.work();
      met_ = pair_.a.xstat("rx_joins") != 0 && pair_.b.xstat("rx_joins") != 0;
      for (uint32_t i = 0; i < 64; ++i) {
        pair_.work();
      }
    }
    EXPECT_TRUE(met_);
  }
  const Port& a() const { return pair_.a; }
  const Port& b() const { return pair_.b; }
  void work() const { pair_.work(); }

  Pool pool_{2048, 8191};
  Pair pair_{"queues",
             pool_,
             {.rx_queues = kQueues, .tx_queues = kQueues, .mtu = 1500, .rss = kRss},
             "qps=" + std::to_string(kQueues)};
  bool met_ = false;
  uint32_t tries_ = 0;
};

TEST_F(NetQueues, FlowsStayOnTheirQueue) {
  std::map<uint32_t, uint16_t> queue_of;
  std::map<uint32_t, uint32_t> hash_of;
  std::array<uint32_t, kQueues> flows{};
  for (uint32_t i = 0; i < 640; ++i) {
    const uint32_t flow = i % 64;
    // A flow's frames have all lengths, in one piece or more.
    const uint32_t length = 60 + i * 2;
    ASSERT_TRUE(
        a().send_now(a().make(datagram(a(), b(), flow, i, length),
                              i % 3 == 0 ? std::vector<uint32_t>{14, 30} : std::vector<uint32_t>{}),
                     [&] { work(); }));
    rte_mbuf* got = nullptr;
    uint16_t queue = 0;
    for (uint32_t turn = 0; turn < kTurns && got == nullptr; ++turn) {
      queue = static_cast<uint16_t>(turn % kQueues);
      got = b().receive([&] { work(); }, 1, queue);
    }
    ASSERT_NE(got, nullptr);
    ASSERT_EQ(flow_of(got), flow);
    ASSERT_EQ(index_of(got), i);
    EXPECT_NE(got->ol_flags & RTE_MBUF_F_RX_RSS_HASH, 0u);
    const auto [known, is_new] = queue_of.try_emplace(flow, queue);
    flows[queue] += is_new ? 1 : 0;
    EXPECT_EQ(known->second, queue) << flow;
    EXPECT_EQ(hash_of.try_emplace(flow, got->hash.rss).first->second, got->hash.rss);
    EXPECT_EQ(got->hash.rss % 128 % kQueues, queue) << "the table's initial value";
    static_cast<void>(take(got));
  }
  for (const uint32_t count : flows) {
    EXPECT_GT(count, 0u);
  }
}

TEST_F(NetQueues, TheTableMovesFlows) {
  rte_eth_rss_reta_entry64 table[2];
  std::memset(table, 0, sizeof(table));
  table[0].mask = table[1].mask = UINT64_MAX;
  std::fill_n(table[0].reta, 64, uint16_t{2});
  std::fill_n(table[1].reta, 64, uint16_t{2});
  ASSERT_EQ(rte_eth_dev_rss_reta_update(b().id(), table, 128), 0);
  std::memset(table[0].reta, 0, sizeof(table[0].reta));
  ASSERT_EQ(rte_eth_dev_rss_reta_query(b().id(), table, 128), 0);
  EXPECT_EQ(table[0].reta[63], 2);
  for (uint32_t flow = 0; flow < 64; ++flow) {
    ASSERT_TRUE(a().send_now(a().make(datagram(a(), b(), flow, 0)), [&] { work(); }));
    rte_mbuf* const got = b().receive([&] { work(); }, kTurns, 2);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(flow_of(got), flow);
    rte_pktmbuf_free(got);
  }
  table[0].reta[7] = kQueues;
  EXPECT_EQ(rte_eth_dev_rss_reta_update(b().id(), table, 128), -EINVAL) << "no such queue";
  EXPECT_EQ(rte_eth_dev_rss_reta_update(b().id(), table, 64), -EINVAL);
  uint8_t key[40];
  rte_eth_rss_conf conf{};
  conf.rss_key = key;
  conf.rss_key_len = sizeof(key);
  ASSERT_EQ(rte_eth_dev_rss_hash_conf_get(b().id(), &conf), 0);
  EXPECT_EQ(key[0], 0x6d);
  EXPECT_EQ(conf.rss_hf, kRss);
  conf.rss_key_len = 39;
  EXPECT_EQ(rte_eth_dev_rss_hash_update(b().id(), &conf), -EINVAL);
}

TEST_F(NetQueues, AQueueThatIsNotPolledFillsUpAlone) {
  // Find a flow for each queue.
  std::map<uint16_t, uint32_t> flow_at;
  for (uint32_t flow = 0; flow < 64; ++flow) {
    ASSERT_TRUE(a().send_now(a().make(datagram(a(), b(), flow, 0)), [&] { work(); }));
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const auto queue = static_cast<uint16_t>(turn % kQueues);
      if (rte_mbuf* const got = b().receive([&] { work(); }, 1, queue)) {
        flow_at[queue] = flow_of(got);
        rte_pktmbuf_free(got);
        break;
      }
    }
  }
  ASSERT_EQ(flow_at.size(), kQueues);
  constexpr uint32_t kEach = 3000;
  uint32_t received = 0;
  for (uint32_t i = 0; i < kEach; ++i) {
    for (const uint16_t queue : {uint16_t{3}, uint16_t{1}}) {
      ASSERT_TRUE(a().send_now(a().make(datagram(a(), b(), flow_at[queue], i)), [&] { work(); }));
    }
    rte_mbuf* const got = b().receive([&] { work(); }, kTurns, 1);
    ASSERT_NE(got, nullptr) << "queue 1 goes on";
    ASSERT_EQ(index_of(got), i);
    rte_pktmbuf_free(got);
    ++received;
  }
  EXPECT_EQ(received, kEach);
  EXPECT_GT(b().xstat("rx_ring_full"), 0u);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(b().id(), &stats), 0);
  EXPECT_EQ(stats.imissed, b().xstat("rx_ring_full"));
  uint64_t kept = 0;
  while (rte_mbuf* const got = b().receive([] {}, kQuietTurns, 3)) {
    ++kept;
    rte_pktmbuf_free(got);
  }
  EXPECT_EQ(kept, 1024u);
  EXPECT_EQ(kept + stats.imissed, kEach) << "none is lost without being counted";
}

TEST_F(NetQueues, EachTransmitQueueIsKnown) {
  for (uint32_t i = 0; i < 100; ++i) {
    for (uint16_t queue = 0; queue < kQueues; ++queue) {
      ASSERT_TRUE(a().send_now(
          a().make(datagram(a(), b(), queue, i)), [&] { work(); }, queue));
      rte_mbuf* got = nullptr;
      for (uint32_t turn = 0; turn < kTurns && got == nullptr; ++turn) {
        got = b().receive([&] { work(); }, 1, static_cast<uint16_t>(turn % kQueues));
      }
      ASSERT_NE(got, nullptr) << queue;
      EXPECT_EQ(flow_of(got), queue);
      rte_pktmbuf_free(got);
    }
  }
  EXPECT_EQ(b().xstat("rx_spoofed"), 0u);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(a().id(), &stats), 0);
  for (uint16_t queue = 0; queue < kQueues; ++queue) {
    EXPECT_GE(stats.q_opackets[queue], 100u);
  }
}

/// One thread per queue, at both ports: each flow arrives in order.
TEST_F(NetQueues, FlowsKeepTheirOrderOnAnyThread) {
  constexpr uint32_t kEach = 20'000;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> received{0};
  std::array<std::map<uint32_t, uint32_t>, kQueues> next;
  std::atomic<uint32_t> overtaken{0};
  std::vector<std::thread> pollers;
  for (uint16_t queue = 0; queue < kQueues; ++queue) {
    pollers.emplace_back([&, queue] {
      while (!stop) {
        rte_mbuf* frames[8];
        const uint16_t n = rte_eth_rx_burst(b().id(), queue, frames, 8);
        for (uint16_t i = 0; i < n; ++i) {
          uint32_t& wanted = next[queue][flow_of(frames[i])];
          overtaken += index_of(frames[i]) < wanted ? 1 : 0;
          wanted = index_of(frames[i]) + 1;
        }
        rte_pktmbuf_free_bulk(frames, n);
        received += n;
      }
    });
  }
  bool all = true;
  for (uint32_t i = 0; i < kEach; ++i) {
    all &= a().send_now(a().make(datagram(a(), b(), i % 16, i)), [] { std::this_thread::yield(); });
  }
  EXPECT_TRUE(all);
  // On a busy machine no poller may run for so long that the sender takes the other port for gone.
  const auto lost = [this] { return a().xstat("tx_refused") + a().xstat("tx_no_peer"); };
  const auto arrived = [&] { return received + b().xstat("rx_ring_full"); };
  for (uint32_t i = 0; i < 100 * kTurns && arrived() + lost() < kEach; ++i) {
    a().work();
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& poller : pollers) {
    poller.join();
  }
  EXPECT_TRUE(arrived() == kEach || (a().xstat("tx_refused") != 0 && arrived() + lost() >= kEach))
      << arrived() << " arrived, " << lost() << " lost";
  // Letters lose the order of plain frames, and of bundles for which the wait was over.
  EXPECT_TRUE(overtaken == 0 || b().xstat("rx_late") != 0 ||
              b().xstat("rx_messages") != b().xstat("rx_bundles"))
      << overtaken;
}

/// Four ports, each of which has joined the others.
TEST(NetMany, BroadcastsReachAll) {
  const Pool pool(2048);
  const std::string fabric = "wire=shm:net-many-" + std::to_string(getpid());
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Port>> ports;
  for (uint32_t i = 1; i <= 4; ++i) {
    const std::string name = "net_rio" + std::to_string(i);
    devices.push_back(std::make_unique<Device>(
        name, fabric + ",qps=1,peers=16:32:48:64,destid=" + std::to_string(16 * i)));
    ports.push_back(std::make_unique<Port>(name, pool, PortConf{.mtu = 9000, .scatter = true}));
  }
  const auto work = [&] {
    for (const auto& port : ports) {
      port->work();
    }
  };
  const auto joined = [&] {
    return std::all_of(ports.begin(), ports.end(),
                       [](const auto& port) { return port->xstat("rx_joins") == 3; });
  };
  for (uint32_t i = 0; i < kTurns && !joined(); ++i) {
    work();
  }
  ASSERT_TRUE(joined());
  const rte_ether_addr group = {{0x01, 0, 0x5E, 0, 0, 1}};
  for (const uint32_t length : {60u, 1500u, 4090u, 9000u}) {
    for (const auto& from : ports) {
      for (const rte_ether_addr& to : {kEverybody, group}) {
        const Bytes bytes = frame_bytes(to, from->mac(), length);
        std::vector<uint32_t> cuts;
        for (uint32_t at = 2000; at < length; at += 2000) {
          cuts.push_back(at);
        }
        ASSERT_TRUE(from->send_now(from->make(bytes, cuts), work));
        for (const auto& port : ports) {
          if (port != from) {
            ASSERT_EQ(take(port->receive(work)), bytes);
          }
        }
      }
    }
  }
  for (const auto& port : ports) {
    EXPECT_EQ(port->receive(work, kQuietTurns), nullptr)
        << "no port gets its own frame, or one twice";
  }
  while (!pool.full()) {
    work();
  }
}

/// Members come and go. While there is exactly one, it gets frames for an address of no card.
TEST(NetMany, FramesForAnUnknownAddressGoToTheOnlyMember) {
  const Pool pool(2048);
  const std::string fabric = "wire=shm:net-only-" + std::to_string(getpid());
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Port>> ports;
  for (uint32_t i = 1; i <= 3; ++i) {
    const std::string name = "net_rio" + std::to_string(i);
    devices.push_back(std::make_unique<Device>(
        name, fabric + ",qps=1,peers=16:32:48,destid=" + std::to_string(16 * i)));
    ports.push_back(std::make_unique<Port>(name, pool, PortConf{.mtu = 1500}));
  }
  const auto work = [&] {
    for (const auto& port : ports) {
      port->work();
    }
  };
  const auto until = [&](const char* counter, uint64_t count) {
    for (uint32_t i = 0; i < kTurns && ports[0]->xstat(counter) != count; ++i) {
      work();
    }
    return ports[0]->xstat(counter) == count;
  };
  const Bytes bytes = frame_bytes({{2, 0, 0, 0, 0, 1}}, ports[0]->mac(), 100);
  const auto send = [&] { return ports[0]->send_now(ports[0]->make(bytes), work); };
  ASSERT_TRUE(until("rx_joins", 2));
  ASSERT_TRUE(send());
  EXPECT_EQ(ports[0]->xstat("tx_no_peer"), 1u) << "it could be either of two";
  ports[1]->stop();
  ASSERT_TRUE(until("rx_leaves", 1));
  ASSERT_TRUE(send());
  EXPECT_EQ(take(ports[2]->receive(work)), bytes);
  ports[2]->stop();
  ASSERT_TRUE(until("rx_leaves", 2));
  ASSERT_TRUE(send());
  EXPECT_EQ(ports[0]->xstat("tx_no_peer"), 2u) << "no other port is left";
  ports[1]->start();
  ASSERT_TRUE(until("rx_joins", 3));
  ASSERT_TRUE(send());
  EXPECT_EQ(take(ports[1]->receive(work)), bytes);
  EXPECT_EQ(ports[0]->receive(work, kQuietTurns), nullptr) << "it does not come back";
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net-queues",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
