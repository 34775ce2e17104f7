// Two Ethernet ports that are wired to each other: frames of all kinds, and what ethdev tells.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_port.hpp"
#include "tests/support/seed.hpp"

namespace rio::test {
namespace {

class NetPair : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(pair_.meet()); }
  void TearDown() override { work(); }
  void work() {
    for (uint32_t i = 0; i < 100; ++i) {
      pair_.work();
    }
  }
  [[nodiscard]] Bytes bytes(uint32_t length, uint32_t seed = 0) const {
    return frame_bytes(b_.mac(), a_.mac(), length, seed);
  }
  /// A frame from a to b. @return its segments there; 0: it is not what was sent.
  uint32_t goes(const Bytes& bytes, const std::vector<uint32_t>& cuts = {}, uint32_t shift = 0) {
    const auto meanwhile = [this] { pair_.work(); };
    if (!a_.send_now(a_.make(bytes, cuts, shift), meanwhile)) {
      return 0;
    }
    rte_mbuf* const got = b_.receive(meanwhile);
    const uint32_t segments = got == nullptr ? 0 : got->nb_segs;
    EXPECT_TRUE(got == nullptr || got->port == b_.id());
    return take(got) == bytes ? segments : 0;
  }

  Pool pool_{4096};
  Pair pair_{"pair", pool_};
  Port& a_ = pair_.a;
  Port& b_ = pair_.b;
};

TEST_F(NetPair, EachLength) {
  for (uint32_t length = 14; length <= 4096; ++length) {
    ASSERT_EQ(goes(bytes(length)), 1u) << length;
  }
  EXPECT_EQ(a_.xstat("tx_bounced"), 0u);
  EXPECT_EQ(a_.xstat("tx_frames"), 4083u);
  EXPECT_EQ(b_.xstat("rx_frames"), 4083u);
  EXPECT_EQ(b_.xstat("rx_bundles"), 4083u + 16) << "those beyond 4080 bytes are two";
}

TEST_F(NetPair, SegmentsAreGatheredWhereTheyLie) {
  EXPECT_EQ(goes(bytes(3001), {1000, 2000}), 1u);
  EXPECT_EQ(goes(bytes(1500), {128}), 1u);
  EXPECT_EQ(goes(bytes(4000), {208, 216, 224, 232, 240}), 1u) << "in two messages";
  EXPECT_EQ(a_.xstat("tx_bounced"), 0u);
  EXPECT_EQ(goes(bytes(3001), {1000, 2000}, 4), 1u) << "from odd places";
  EXPECT_EQ(a_.xstat("tx_bounced"), 1u);
  EXPECT_EQ(goes(bytes(3000), {1001}), 1u) << "an odd length ends a message, and is not copied";
  EXPECT_EQ(a_.xstat("tx_bounced"), 1u);
  for (const uint32_t cut : {1u, 5u, 14u, 54u}) {
    EXPECT_EQ(goes(bytes(3000), {cut}), 1u) << "headers in segments of their own";
  }
  EXPECT_EQ(a_.xstat("tx_bounced"), 5u);
}

TEST_F(NetPair, SmallSegmentsAreCopied) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t i = 0; i < 300; ++i) {
    const uint32_t length = 14 + static_cast<uint32_t>(random() % 1011);
    std::vector<uint32_t> cuts(random() % 6);
    for (uint32_t& cut : cuts) {
      cut = static_cast<uint32_t>(random() % (length + 1));
    }
    std::sort(cuts.begin(), cuts.end());
    ASSERT_EQ(goes(bytes(length, i), cuts, static_cast<uint32_t>(random() % 16)), 1u);
  }
}

/// Padding is what else an old bundle would say.
TEST_F(NetPair, PaddingSaysNothing) {
  // All places of the ring were filled with others' bytes.
  for (uint32_t i = 0; i < 600; ++i) {
    ASSERT_EQ(goes(bytes(1024, i)), 1u);
  }
  const Device device("raw_rio7", "wire=padding,destid=0x700,qps=1");
  const Device other("net_rio7", "wire=padding,destid=0x710");
  const Port port("net_rio7", pool_);
  RawPeer peer("raw_rio7", 0x710, [&] { port.work(); });
  ASSERT_EQ(peer.ring(0x1020), 0);
  ASSERT_TRUE(peer.hears(0x1040));
  for (uint32_t i = 0; i < 600; ++i) {
    const uint32_t length = i < 300 ? 1024 : 57;
    ASSERT_TRUE(port.send(port.make(frame_bytes(address(0x700), port.mac(), length, i))));
    std::vector<RawPeer::Message> got;
    for (uint32_t turn = 0; turn < kTurns && got.empty(); ++turn) {
      port.work();
      got = peer.messages();
    }
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].mbox, 1 + (i + 1) % 3) << "the three in turn";
    if (length == 57) {
      ASSERT_EQ(got[0].bytes.size(), 8u + 8 + 64);
      EXPECT_EQ(Bytes(got[0].bytes.end() - 7, got[0].bytes.end()), Bytes(7));
    }
  }
}

TEST_F(NetPair, LongFramesAreHandedOverWhereTheyLanded) {
  const auto meanwhile = [this] { pair_.work(); };
  std::vector<rte_mbuf*> held;
  for (const uint32_t length : {60u, 600u, 1500u, 4080u}) {
    ASSERT_TRUE(a_.send(a_.make(bytes(length))));
    held.push_back(b_.receive(meanwhile));
    ASSERT_NE(held.back(), nullptr);
    EXPECT_EQ(held.back()->pool == pool_.get(), length < 512) << length;
    EXPECT_EQ(held.back()->nb_segs, 1);
    EXPECT_GE(rte_pktmbuf_headroom(held.back()), 128);
  }
  for (rte_mbuf* const frame : held) {
    EXPECT_FALSE(take(frame).empty());
  }
}

TEST_F(NetPair, WhoHoldsAllBuffersGetsCopies) {
  const auto meanwhile = [this] { pair_.work(); };
  std::vector<rte_mbuf*> held;
  bool copied = false;
  for (uint32_t i = 0; i < 1900 && !copied; ++i) {
    ASSERT_TRUE(a_.send_now(a_.make(bytes(1500, i)), meanwhile));
    held.push_back(b_.receive(meanwhile));
    ASSERT_NE(held.back(), nullptr) << i;
    copied = held.back()->pool == pool_.get();
  }
  EXPECT_TRUE(copied) << held.size();
  for (uint32_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(take(held[i]), bytes(1500, i)) << "it was still the user's";
  }
  ASSERT_EQ(goes(bytes(1500)), 1u);
}

TEST_F(NetPair, FramesWaitForMbufs) {
  std::vector<rte_mbuf*> all;
  rte_mbuf* const frame = a_.make(bytes(100));
  ASSERT_TRUE(a_.send(frame));
  while (rte_mbuf* const one = rte_pktmbuf_alloc(pool_.get())) {
    all.push_back(one);
  }
  EXPECT_EQ(b_.receive([this] { pair_.work(); }, kQuietTurns), nullptr);
  EXPECT_GT(b_.xstat("rx_no_mbuf"), 0u);
  rte_pktmbuf_free_bulk(all.data(), static_cast<unsigned>(all.size()));
  EXPECT_EQ(take(b_.receive([this] { pair_.work(); })), bytes(100));
}

TEST_F(NetPair, SharedMbufsAreLeftAsTheyAre) {
  rte_mbuf* const frame = a_.make(bytes(1500));
  rte_mbuf_refcnt_update(frame, 1);
  const Bytes before(static_cast<uint8_t*>(frame->buf_addr),
                     static_cast<uint8_t*>(frame->buf_addr) + frame->data_off);
  ASSERT_TRUE(a_.send(frame));
  EXPECT_EQ(take(b_.receive([this] { pair_.work(); })), bytes(1500));
  ASSERT_TRUE(pair_.until([&] { return rte_mbuf_refcnt_read(frame) == 1; }));
  EXPECT_EQ(Bytes(static_cast<uint8_t*>(frame->buf_addr),
                  static_cast<uint8_t*>(frame->buf_addr) + frame->data_off),
            before)
      << "its headroom is somebody else's, too";
  rte_pktmbuf_free(frame);
}

TEST_F(NetPair, LengthsThatAreNoneAreDroppedAndCounted) {
  ASSERT_EQ(rte_eth_dev_set_mtu(a_.id(), 1500), 0);
  rte_mbuf* const shorter = a_.make(bytes(60));
  shorter->pkt_len = shorter->data_len = 13;
  ASSERT_TRUE(a_.send(shorter));
  EXPECT_EQ(a_.xstat("tx_bad_lengths"), 1u);
  ASSERT_TRUE(a_.send(a_.make(bytes(1523))));
  EXPECT_EQ(a_.xstat("tx_bad_lengths"), 2u);
  EXPECT_EQ(goes(bytes(14)), 1u);
  ASSERT_EQ(goes(bytes(1522)), 1u) << "the MTU, a header and two tags";
  ASSERT_EQ(rte_eth_dev_set_mtu(a_.id(), 68), 0);
  ASSERT_EQ(goes(bytes(90)), 1u);
  ASSERT_TRUE(a_.send(a_.make(bytes(91))));
  EXPECT_EQ(a_.xstat("tx_bad_lengths"), 3u) << "small ones, too";
}

TEST_F(NetPair, LongerThanTheReceiversMtu) {
  ASSERT_EQ(rte_eth_dev_set_mtu(b_.id(), 1500), 0);
  ASSERT_EQ(goes(bytes(1522)), 1u);
  ASSERT_TRUE(a_.send(a_.make(bytes(1523))));
  ASSERT_TRUE(a_.send(a_.make(bytes(4090))));
  ASSERT_TRUE(pair_.until([this] {
    EXPECT_EQ(b_.receive([] {}, 1), nullptr);
    return b_.xstat("rx_too_long") == 2;
  }));
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(b_.id(), &stats), 0);
  EXPECT_EQ(stats.ierrors, 2u + b_.xstat("rx_bad_parts"));
}

TEST_F(NetPair, WhoHasJoinedGetsBroadcasts) {
  for (const uint32_t cut : {0u, 50u}) {
    const Bytes wanted = frame_bytes(kEverybody, a_.mac(), 100);
    rte_mbuf* const frame = a_.make(wanted, cut == 0 ? std::vector<uint32_t>{} : std::vector{cut});
    rte_mbuf_refcnt_update(frame, 2);  // ours: a free too many would show
    ASSERT_TRUE(a_.send(frame));
    EXPECT_EQ(take(b_.receive([this] { pair_.work(); })), wanted);
    work();
    EXPECT_EQ(rte_mbuf_refcnt_read(frame), 2);
    rte_pktmbuf_free(frame);
    rte_pktmbuf_free(frame);
  }
  b_.stop();
  for (uint32_t i = 0; i < kTurns && a_.xstat("rx_leaves") == 0; ++i) {
    a_.work();
  }
  ASSERT_EQ(a_.xstat("rx_leaves"), 1u);
  ASSERT_TRUE(a_.send(a_.make(bytes(100))));
  EXPECT_EQ(a_.xstat("tx_no_peer"), 1u) << "it has left";
  b_.start();
  ASSERT_TRUE(pair_.until([this] { return a_.xstat("rx_joins") == 1; }));
  EXPECT_EQ(goes(bytes(100)), 1u);
}

/// As on a cable: the only peer gets frames for an address of no card, of all lengths and in all
/// segmentations.
TEST_F(NetPair, AnUnknownAddressIsTheOnlyPeers) {
  const rte_ether_addr other = {{2, 0, 0, 0, 0, 9}};
  for (const uint32_t length : {60u, 1000u, 2000u, 4090u}) {
    EXPECT_EQ(goes(frame_bytes(other, a_.mac(), length)), 1u) << length;
    EXPECT_EQ(goes(frame_bytes(other, a_.mac(), length), {30}), 1u) << length;
  }
  EXPECT_EQ(a_.receive([this] { pair_.work(); }, kQuietTurns), nullptr) << "nothing comes back";
  EXPECT_EQ(a_.xstat("tx_no_peer"), 0u);
}

/// As bridges send them, and programs that swap addresses.
TEST_F(NetPair, FramesFromAddressesThatAreNoCards) {
  const rte_ether_addr from = {{2, 0, 0, 0, 0, 8}};
  const rte_ether_addr group = {{3, 0, 0, 0, 0, 8}};
  EXPECT_EQ(goes(frame_bytes(b_.mac(), from, 100)), 1u);
  EXPECT_EQ(b_.xstat("rx_spoofed"), 0u);
  ASSERT_TRUE(a_.send(a_.make(frame_bytes(b_.mac(), group, 100))));
  EXPECT_EQ(b_.receive([this] { pair_.work(); }, kQuietTurns), nullptr);
  EXPECT_EQ(b_.xstat("rx_spoofed"), 1u) << "a group sends nothing";
}

/// Ports of one process: a program that swaps addresses sends with the other port's.
TEST_F(NetPair, PortsOfAProcessStandInForEachOther) {
  EXPECT_EQ(goes(frame_bytes(b_.mac(), b_.mac(), 100)), 1u);
  EXPECT_EQ(goes(frame_bytes(a_.mac(), b_.mac(), 100)), 1u) << "its own address is not itself";
  EXPECT_EQ(b_.xstat("rx_spoofed") + a_.xstat("tx_no_peer"), 0u);
}

TEST_F(NetPair, NobodyOfThatAddress) {
  ASSERT_TRUE(a_.send(a_.make(frame_bytes(address(0x7776), a_.mac(), 100))));
  ASSERT_TRUE(a_.send(a_.make(frame_bytes(address(0x7777), a_.mac(), 2000))));
  EXPECT_EQ(a_.xstat("tx_no_peer"), 2u);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(a_.id(), &stats), 0);
  EXPECT_EQ(stats.oerrors, 2u);
  ASSERT_EQ(rte_eth_stats_reset(a_.id()), 0);
  ASSERT_EQ(rte_eth_stats_get(a_.id(), &stats), 0);
  EXPECT_EQ(stats.oerrors + stats.opackets, 0u);
}

TEST_F(NetPair, FramesOfOthersAreDropped) {
  Bytes spoofed = bytes(100);
  spoofed[11] ^= 1;
  ASSERT_TRUE(a_.send(a_.make(spoofed)));
  EXPECT_EQ(b_.receive([this] { pair_.work(); }, kQuietTurns), nullptr);
  EXPECT_EQ(b_.xstat("rx_spoofed"), 1u);
}

TEST_F(NetPair, ToldOfLinkAndLimits) {
  rte_eth_link link{};
  ASSERT_EQ(rte_eth_link_get_nowait(a_.id(), &link), 0);
  EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
  EXPECT_GT(link.link_speed, 0u);
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(a_.id(), &info), 0);
  EXPECT_EQ(info.max_mtu, 65513);
  EXPECT_STREQ(info.driver_name, "net_rio");
  EXPECT_EQ(rte_eth_dev_set_mtu(a_.id(), 65514), -EINVAL);
  EXPECT_EQ(rte_eth_dev_set_mtu(a_.id(), 4083), -EINVAL) << "mbufs are too small";
  EXPECT_EQ(rte_eth_dev_set_mtu(a_.id(), 1500), 0);
}

TEST_F(NetPair, WhatQueuesTell) {
  rte_eth_rxq_info rx{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(a_.id(), 0, &rx), 0);
  EXPECT_EQ(rx.mp, pool_.get());
  EXPECT_EQ(rx.nb_desc, 256);
  EXPECT_EQ(rx.scattered_rx, 0);
  rte_eth_txq_info tx{};
  ASSERT_EQ(rte_eth_tx_queue_info_get(a_.id(), 0, &tx), 0);
  EXPECT_EQ(tx.nb_desc, 256);
  EXPECT_NE(tx.conf.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS, 0u);
  rte_eth_burst_mode mode{};
  ASSERT_EQ(rte_eth_rx_burst_mode_get(a_.id(), 0, &mode), 0);
  EXPECT_STREQ(mode.info, "bundles");
  ASSERT_EQ(rte_eth_tx_burst_mode_get(a_.id(), 0, &mode), 0);
  EXPECT_STREQ(mode.info, "bundles");
  rte_power_monitor_cond condition{};
  EXPECT_EQ(rte_eth_get_monitor_addr(a_.id(), 0, &condition), -ENOTSUP) << "inline";
}

TEST_F(NetPair, WhatDescriptorsAre) {
  EXPECT_EQ(rte_eth_rx_queue_count(b_.id(), 0), 0);
  EXPECT_EQ(rte_eth_rx_descriptor_status(b_.id(), 0, 0), RTE_ETH_RX_DESC_AVAIL);
  EXPECT_EQ(rte_eth_rx_descriptor_status(b_.id(), 0, 256), -EINVAL);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(a_.send(a_.make(bytes(2000, i))));
  }
  EXPECT_EQ(rte_eth_tx_descriptor_status(a_.id(), 0, 255), RTE_ETH_TX_DESC_FULL)
      << "the last that was sent";
  EXPECT_EQ(rte_eth_tx_descriptor_status(a_.id(), 0, 256), -EINVAL);
  ASSERT_TRUE(pair_.until([this] { return rte_eth_rx_queue_count(b_.id(), 0) == 3; }));
  EXPECT_EQ(rte_eth_rx_descriptor_status(b_.id(), 0, 2), RTE_ETH_RX_DESC_DONE);
  EXPECT_EQ(rte_eth_rx_descriptor_status(b_.id(), 0, 3), RTE_ETH_RX_DESC_AVAIL);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(take(b_.receive([this] { pair_.work(); })), bytes(2000, i));
  }
  work();
  EXPECT_EQ(rte_eth_tx_descriptor_status(a_.id(), 0, 255), RTE_ETH_TX_DESC_DONE);
  EXPECT_EQ(rte_eth_rx_queue_count(b_.id(), 0), 0);
}

TEST_F(NetPair, CleanUpGivesMbufsBack) {
  rte_mbuf* const frame = a_.make(bytes(2000));
  ASSERT_TRUE(a_.send(frame));
  rte_mbuf* got = nullptr;
  for (uint32_t i = 0; i < kTurns && got == nullptr; ++i) {
    (void)rte_eth_rx_burst(b_.id(), 0, &got, 1);
  }
  EXPECT_EQ(take(got), bytes(2000));
  int back = 0;
  for (uint32_t i = 0; i < kTurns && back == 0; ++i) {
    back = rte_eth_tx_done_cleanup(a_.id(), 0, 0);
    b_.work();
  }
  EXPECT_EQ(back, 1);
  EXPECT_TRUE(pool_.full());
}

TEST_F(NetPair, XstatsByIdAreThoseByName) {
  ASSERT_EQ(goes(bytes(2000)), 1u);
  const int count = rte_eth_xstats_get_names(b_.id(), nullptr, 0);
  ASSERT_GT(count, 25);
  std::vector<rte_eth_xstat_name> names(static_cast<size_t>(count));
  std::vector<rte_eth_xstat> all(names.size());
  ASSERT_EQ(rte_eth_xstats_get_names(b_.id(), names.data(), static_cast<unsigned>(count)), count);
  ASSERT_EQ(rte_eth_xstats_get(b_.id(), all.data(), static_cast<unsigned>(all.size())), count);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i].name;
    if (name == "rx_frames" || name == "rx_bytes" || name == "rx_bundles") {
      EXPECT_EQ(all[i].value, name == "rx_bytes" ? 2000u : 1u) << name;
    }
    uint64_t id = 0;
    ASSERT_EQ(rte_eth_xstats_get_id_by_name(b_.id(), names[i].name, &id), 0);
    EXPECT_EQ(id, i);
  }
  ASSERT_EQ(rte_eth_xstats_reset(b_.id()), 0);
  EXPECT_EQ(b_.xstat("rx_frames"), 0u);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(b_.id(), &stats), 0);
  EXPECT_EQ(stats.ipackets + stats.ibytes, 0u);
  EXPECT_EQ(stats.q_ipackets[0] + stats.q_ibytes[0], 0u) << "of queues, too";
}

TEST_F(NetPair, MbufsComeBack) {
  for (uint32_t i = 0; i < 3000; ++i) {
    ASSERT_EQ(goes(bytes(60 + i % 2000, i)), 1u);
  }
  EXPECT_TRUE(pair_.until([this] { return pool_.full(); }));
  for (uint32_t i = 0; i < 40; ++i) {  // some that nobody receives
    ASSERT_TRUE(a_.send(a_.make(bytes(3000))));
  }
  b_.stop();
  a_.stop();
  EXPECT_TRUE(pool_.full()) << "after a stop";
  a_.start();
  b_.start();
  ASSERT_TRUE(pair_.meet());
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net", {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
