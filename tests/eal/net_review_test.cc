// Effects of hostile, absent and forgetful peers on a port.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_rawdev.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_peer.hpp"

namespace rio::test {
namespace {

TEST_F(NetPeer, IncompleteFramesReleaseTheirMbufs) {
  call();
  const Hoard hoard(pool_, 2);
  const Bytes begin = from_peer(500);  // too short to be handed over in its buffer
  for (uint16_t qp = 0; qp < 2; ++qp) {
    Bytes part = begin;
    part[11] = static_cast<uint8_t>(qp);  // the source's own address
    ASSERT_EQ(send(bundle(1, qp).item(part, 9000), qp), 0);
    expect_frames({});
  }
  ASSERT_EQ(rte_mempool_avail_count(pool_.get()), 0u);
  ASSERT_EQ(send(bundle().item(from_peer(100))), 0);
  rte_mbuf* const got = port_.receive([] {});
  ASSERT_NE(got, nullptr) << "it waits for mbufs that incomplete frames hold for ever";
  EXPECT_EQ(take(got), from_peer(100));
  EXPECT_EQ(port_.xstat("rx_bad_parts"), 2u);
}

TEST_F(NetPeer, TinyPartsShareMbufs) {
  call();
  const Bytes all = from_peer(9000, 3);
  const uint32_t before = rte_mempool_avail_count(pool_.get());
  const auto part = [&](uint32_t at, uint32_t end) {
    return Bytes(all.begin() + at, all.begin() + end);
  };
  constexpr uint32_t kPart = 16;
  constexpr uint32_t kItems = 160;
  uint32_t at = 0;
  while (at + kItems * kPart < all.size()) {
    BundleBytes bytes = bundle(kItems);
    for (const uint32_t end = at + kItems * kPart; at != end; at += kPart) {
      bytes.item(part(at, at + kPart), 9000, static_cast<uint16_t>(at));
    }
    ASSERT_EQ(send(bytes), 0);
    expect_frames({});
    ASSERT_GE(rte_mempool_avail_count(pool_.get()) + 4, before);
  }
  ASSERT_EQ(send(bundle().item(part(at, 9000), 9000, static_cast<uint16_t>(at))), 0);
  expect_frames({all});
}

/// Many messages that waited for one that never comes, followed by bad ones only.
TEST_F(NetPeer, ManyBadMessagesDoNotBlockABurst) {
  call();
  constexpr uint32_t kWaiting = 48;
  constexpr uint32_t kBad = 63;  // the most that one burst examines
  const auto spoilt = [&](uint16_t number) {
    return BundleBytes(1, kEpoch, number).item(Bytes(8, 0xFF), 0xFFFF);
  };
  const auto poll = [&](uint16_t n) {
    rte_mbuf* got[32];
    const uint16_t taken = rte_eth_rx_burst(port_.id(), 0, got, n);
    rte_pktmbuf_free_bulk(got, taken);
    return taken;
  };
  ASSERT_EQ(send(bundle().item(from_peer(64))), 0);
  expect_frames({from_peer(64)});
  for (uint16_t i = 0; i < kWaiting; ++i) {
    ASSERT_EQ(send(spoilt(static_cast<uint16_t>(2 + i))), 0);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(poll(1), 0);
  }
  ASSERT_EQ(port_.xstat("rx_out_of_order"), kWaiting);
  const Bytes own = frame_bytes(port_.mac(), address(kPeer + 1), 64);
  ASSERT_EQ(send(bundle(2, 1).item(own).item(own), 1), 0);
  for (uint32_t i = 0; i < kBad; ++i) {
    ASSERT_EQ(send(BundleBytes(1, kEpoch, 0), 2), 0);
  }
  ASSERT_EQ(poll(1), 1);
  const auto parted = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  while (std::chrono::steady_clock::now() < parted) {  // the wait is over
  }
  ASSERT_EQ(poll(32), 1);
  EXPECT_EQ(port_.xstat("rx_bad_bundles"), kBad);
  EXPECT_EQ(port_.xstat("rx_too_long"), kWaiting);
  for (uint32_t i = 0; i < 10; ++i) {
    ASSERT_EQ(send(bundle(1, 1).item(own), 1), 0);
    expect_frames({own});
  }
}

/// A broadcast that takes more entries than are free while a single message is out.
TEST(NetWhole, ABroadcastMayTakeTheWholeRing) {
  constexpr uint16_t kMtu = 65513;
  const Pool pool{16384, 255};
  const Device net("net_rio0", "wire=whole,destid=0x100,peers=0x200");
  const Device raw("raw_rio0", "wire=whole,destid=0x200,qps=4");
  Port port("net_rio0", pool, {.mtu = kMtu, .entries = 64, .scatter = true});
  RawPeer peer("raw_rio0", kPort, [&] { port.work(); });
  for (uint16_t qp = 0; qp < 4; ++qp) {
    ASSERT_EQ(peer.ring(kCall, qp), 0);
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      port.work();
    }
  }
  const auto polls = [&] {
    rte_mbuf* none[1];
    rte_eth_rx_burst(port.id(), 0, none, 0);
    peer.messages();
  };
  const auto sends = [&](const Bytes& bytes) {
    return port.send_now(port.make(bytes, {16000, 32000, 48000, 64000}), polls);
  };
  ASSERT_TRUE(port.send(port.make(frame_bytes(address(kPeer), port.mac(), 100))));
  ASSERT_EQ(port.xstat("tx_no_peer"), 0u);
  EXPECT_TRUE(sends(frame_bytes(kEverybody, port.mac(), 65500))) << "68 entries";
  EXPECT_EQ(port.xstat("tx_no_peer"), 1u);
  EXPECT_TRUE(sends(frame_bytes(kEverybody, port.mac(), 64500))) << "64 entries";
  EXPECT_EQ(port.xstat("tx_no_peer"), 1u);
}

class NetFewForAll : public NetPeer {
 protected:
  NetFewForAll() : NetPeer(",storm=16") {}  // one at once
};

TEST_F(NetFewForAll, ABroadcastThatWaitsForMbufsCountsOnce) {
  call();
  const Bytes all = frame_bytes(kEverybody, address(kPeer), 600);
  const auto part = [&](uint32_t at, uint32_t end) {
    return Bytes(all.begin() + at, all.begin() + end);
  };
  Hoard hoard(pool_, 0);
  ASSERT_EQ(send(bundle().item(part(0, 500), 600)), 0);
  expect_frames({});
  hoard.give(2);
  ASSERT_EQ(send(bundle().item(part(500, 600), 600, 500)), 0);
  expect_frames({all});
  EXPECT_EQ(port_.xstat("rx_storms"), 0u);
}

/// A port, and a peer that it has not named: no other port calls the peer.
TEST(NetReview, AResetPortCallsUnnamedPeers) {
  const Pool pool{4096};
  const Device card("raw_rio1", "wire=reset,destid=0x100,qps=2");
  const Device net("net_rio0", "card=raw_rio1,peers=0x300");
  const Device raw("raw_rio0", "wire=reset,destid=0x200");
  Port port("net_rio0", pool, {.mtu = 9000, .scatter = true});
  RawPeer peer("raw_rio0", kPort, [&] { port.work(); });
  ASSERT_EQ(peer.ring(kCall), 0);
  ASSERT_TRUE(peer.hears(kAnswer));
  static_cast<void>(peer.bells());
  ASSERT_EQ(rte_rawdev_reset(rte_rawdev_get_dev_id("raw_rio1")), 0);
  EXPECT_TRUE(peer.hears(kCall)) << "otherwise it never knows that it has to answer";
  ASSERT_EQ(peer.ring(kAnswer), 0);
  ASSERT_TRUE(port.send(port.make(frame_bytes(address(kPeer), port.mac(), 100))));
  EXPECT_EQ(port.xstat("tx_no_peer"), 0u);
}

/// A peer that was here before the port restarted, and has not noticed.
TEST(NetReview, APeerThatSendsWithoutHavingJoinedIsCalled) {
  const Pool pool{4096};
  const Device net("net_rio0", "wire=stranger,destid=0x100,peers=0x300");
  const Device raw("raw_rio0", "wire=stranger,destid=0x200,qps=2");
  Port port("net_rio0", pool, {.mtu = 9000, .scatter = true});
  RawPeer peer("raw_rio0", kPort, [&] { port.work(); });
  const Bytes bytes = frame_bytes(port.mac(), address(kPeer), 100);
  const auto receives = [&] { return port.receive([&] { port.work(); }, kQuietTurns); };
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(peer.send(BundleBytes(1, kEpoch, static_cast<uint16_t>(i)).item(bytes).bytes, 1), 0);
    EXPECT_EQ(take(receives()), bytes);
  }
  EXPECT_TRUE(peer.hears(kCall));
  EXPECT_EQ(peer.bells().size(), 2u) << "once";
  port.stop();
  port.start();
  ASSERT_EQ(peer.send(BundleBytes(1, kEpoch, 0).item(bytes).bytes, 1, 1), 0);
  EXPECT_EQ(receives(), nullptr) << "its port has not named this queue yet";
  EXPECT_TRUE(peer.hears(kCall));
}

/// A peer whose card works, although its program takes no messages.
class NetAsleep : public NetPeer {
 protected:
  NetAsleep() : NetPeer(",retry_limit=1000") {}
};

TEST_F(NetAsleep, PeerIsNotAwaitedBeyondTheRetryLimit) {
  call();
  ASSERT_EQ(peer_.ring(kCall, 1), 0);  // no buffers are posted for this queue pair
  for (uint32_t i = 0; i < kQuietTurns; ++i) {
    port_.work();
  }
  const Bytes lost = frame_bytes(address(kPeer + 1), port_.mac(), 2000);
  for (uint32_t i = 0; i < 100; ++i) {
    static_cast<void>(port_.send(port_.make(lost)));
  }
  EXPECT_EQ(sent(to_peer(100)).size(), 1u) << "other peers do not wait for a sleeping one";
}

/// A sleeping peer, with a card that retries for ever, and on which others wait behind it.
class NetSleeper : public NetPeer {
 protected:
  explicit NetSleeper(const char* keys = ",pass_over=0") : NetPeer(keys) {}
  void fall_asleep() {
    ASSERT_EQ(peer_.ring(kCall, 1), 0);
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      port_.work();
    }
    for (uint32_t i = 0; i < 100; ++i) {
      static_cast<void>(port_.send(port_.make(lost_)));
    }
  }
  const Bytes lost_ = frame_bytes(address(kPeer + 1), port_.mac(), 2000);
};

TEST_F(NetSleeper, IsGivenUpIfOtherPeersWait) {
  call();
  ASSERT_NO_FATAL_FAILURE(fall_asleep());
  bool came = false;
  for (uint32_t i = 0; i < 3000 && !came; ++i) {  // EAL's thread may take long
    static_cast<void>(port_.send(port_.make(to_peer(100))));
    came = !peer_.messages().empty();
    usleep(10'000);
  }
  ASSERT_TRUE(came);
  EXPECT_GT(port_.xstat("tx_refused"), 0u);
  const uint64_t before = port_.xstat("tx_no_peer");
  EXPECT_TRUE(port_.send(port_.make(lost_)));
  EXPECT_EQ(port_.xstat("tx_no_peer"), before + 1) << "the sleeper is not asked again";
  static_cast<void>(peer_.messages());
  EXPECT_EQ(sent(to_peer(101)).size(), 1u);
  ASSERT_EQ(peer_.ring(kCall, 1), 0);
  for (uint32_t i = 0; i < kQuietTurns; ++i) {
    port_.work();
  }
  EXPECT_TRUE(port_.send(port_.make(lost_)));
  EXPECT_EQ(port_.xstat("tx_no_peer"), before + 1) << "until it is heard";
}

/// With a card that passes over the messages to it.
class NetPassedSleeper : public NetSleeper {
 protected:
  NetPassedSleeper() : NetSleeper("") {}
};

TEST_F(NetPassedSleeper, DoesNotDelayOthers) {
  call();
  ASSERT_NO_FATAL_FAILURE(fall_asleep());
  EXPECT_EQ(sent(to_peer(100)).size(), 1u);
  EXPECT_EQ(port_.xstat("tx_refused"), 0u);
}

TEST_F(NetSleeper, IsCalledRarelyUntilItIsHeard) {
  call();
  ASSERT_EQ(peer_.ring(kCall, 1), 0);  // another peer has joined
  const auto given_up = [&] { return port_.xstat("tx_refused") != 0; };
  for (uint32_t i = 0; i < 3000 && !given_up(); ++i) {  // EAL's thread may take long
    for (uint32_t k = 0; k < 32; ++k) {
      static_cast<void>(port_.send(port_.make(to_peer(2000))));
    }
    static_cast<void>(peer_.bells());  // its card works, but it takes no message
    usleep(10'000);
  }
  ASSERT_TRUE(given_up());
  size_t bells = 0;
  for (uint32_t i = 0; i < 250; ++i) {
    port_.work();
    bells += peer_.bells().size();
    usleep(10'000);
  }
  EXPECT_LE(bells, 2u) << "other peers are called each second";
  while (!peer_.messages().empty()) {
  }
  ASSERT_EQ(send(bundle().item(from_peer(100))), 0);
  EXPECT_EQ(frames(), std::vector<Bytes>{from_peer(100)});
  EXPECT_TRUE(peer_.hears(kCall));
}

TEST_F(NetSleeper, IsAwaitedIfItIsTheOnlyPeer) {
  ASSERT_NO_FATAL_FAILURE(fall_asleep());
  for (uint32_t i = 0; i < 200; ++i) {
    port_.work();
    EXPECT_TRUE(peer_.messages().empty());  // its card works
    usleep(10'000);
  }
  EXPECT_EQ(port_.xstat("tx_refused"), 0u);
}

TEST(NetReview, AnAddressFollowsItsCard) {
  const Pool pool{4096};
  const Device card("raw_rio1", "wire=moved,destid=0x100,qps=2");
  const Device net("net_rio0", "card=raw_rio1,peers=0x200");
  const Device raw("raw_rio0", "wire=moved,destid=0x200");
  const uint16_t id = rte_rawdev_get_dev_id("raw_rio1");
  Port port("net_rio0", pool, {.mtu = 1500});
  port.stop();
  rte_raw_rio_config config{};
  rte_rawdev_info info{};
  info.dev_private = &config;
  config.base_dest_id = 0x500;
  ASSERT_EQ(rte_rawdev_configure(id, &info, sizeof(config)), 0);
  port.start();
  EXPECT_EQ(port.mac().addr_bytes[4], 5) << "00:01:00:01:05:00";
}

/// Doorbells to many absent peers leave frames their share of the ring.
TEST(NetReview, AbsentPeersDoNotFillTheRing) {
  constexpr uint32_t kBursts = 20;
  const Pool pool{4096};
  const Device net("net_rio0", "wire=absent,destid=0x100,peers=0x200:0x1000-0x1fff");
  const Device raw("raw_rio0", "wire=absent,destid=0x200");
  Port port("net_rio0", pool, {.mtu = 1500, .entries = 64});
  RawPeer peer("raw_rio0", kPort, [] {});
  uint32_t taken = 0;
  for (uint32_t i = 0; i < kBursts; ++i) {
    taken += port.send(port.make(frame_bytes(address(kPeer), port.mac(), 100))) ? 1 : 0;
    static_cast<void>(peer.messages());
  }
  EXPECT_EQ(taken, kBursts);
}

TEST(NetReview, BadArgumentsAreReported) {
  const Device card("raw_rio1", "destid=0x100");
  for (const auto& [args, told] : std::vector<std::pair<const char*, const char*>>{
           {"peer=5",
            "no argument 'peer' for an emulated card: take one of card, qp, peers, mbox, storm, "
            "handover, tx_ring,"},
           {"peers=5,peers=6", "argument 'peers' is given twice"},
           {"card=raw_rio1,card=raw_rio1", "argument 'card' is given twice"},
           {"card=raw_rio1,peer=5", "no argument 'peer' for an emulated card"},
           {"card=raw_rio1,tx_ring=64", "'tx_ring' is for a card of its own: give it to raw_rio1"},
           {"card=raw_rio1,wire=w", "'wire' is for a card of its own: give it to raw_rio1"}}) {
    LogCapture log;
    EXPECT_NE(rte_vdev_init("net_rio0", args), 0) << args;
    EXPECT_NE(log.text().find(told), std::string::npos) << log.text();
  }
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net-review",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
