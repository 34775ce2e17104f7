// A port, and a peer that sends what no port would.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_peer.hpp"
#include "tests/support/seed.hpp"

namespace rio::test {
namespace {

TEST_F(NetPeer, NotASpoofedSource) {
  call();
  const Bytes good = from_peer(100);
  for (uint32_t byte = 6; byte < 12; ++byte) {
    Bytes bad = good;
    bad[byte] ^= 1;
    ASSERT_EQ(peer_.send(bad, 0), 0);
    ASSERT_EQ(send(bundle(3).item(good).item(bad).item(good)), 0);
    expect_frames({good, good});
    EXPECT_EQ(port_.xstat("rx_spoofed"), 2u * (byte - 5));
  }
  ASSERT_EQ(send(bundle().item(frame_bytes(port_.mac(), kEverybody, 100))), 0);
  ASSERT_EQ(send(bundle().item(frame_bytes(port_.mac(), port_.mac(), 100))), 0);
  expect_frames({});
}

/// Queue pairs of the raw device are the cards of four: nobody's claim may concern another.
TEST_F(NetPeer, ForgedClaimsOfDestIds) {
  call(1);
  ASSERT_EQ(peer_.ring(static_cast<uint16_t>(kCall | 31), 1), 0);  // 0x201 says it has 0x202…
  ASSERT_EQ(peer_.ring(static_cast<uint16_t>(kCall | 31), 3), 0);
  for (uint32_t i = 0; i < kQuietTurns; ++i) {
    port_.work();
  }
  ASSERT_EQ(send(bundle(1, 1).item(from_peer(100)), 1), 0);
  EXPECT_EQ(frames().size(), 1u) << "0x201 sends for 0x200, as that one says";
  ASSERT_EQ(send(bundle(1, 2).item(frame_bytes(port_.mac(), address(0x202), 100)), 2), 0);
  EXPECT_EQ(frames().size(), 1u) << "0x202 is itself";
  ASSERT_EQ(send(bundle(1, 2).item(frame_bytes(port_.mac(), address(0x203), 100)), 2), 0);
  ASSERT_EQ(send(bundle(1, 1).item(frame_bytes(port_.mac(), address(0x202), 100)), 1), 0);
  ASSERT_EQ(send(bundle(1, 3).item(frame_bytes(port_.mac(), address(0x202), 100)), 3), 0);
  expect_frames({});
  EXPECT_EQ(port_.xstat("rx_spoofed"), 3u) << "nobody passes for who comes behind him";
}

TEST_F(NetPeer, TooShortAndTooLong) {
  call();
  ASSERT_EQ(peer_.send(Bytes(8, 1), 0), 0);
  ASSERT_EQ(send(bundle(2).item(Bytes(13, 1)).item(from_peer(60))), 0);
  expect_frames({from_peer(60)});
  EXPECT_EQ(port_.xstat("rx_bad_lengths"), 2u);
  ASSERT_EQ(rte_eth_dev_set_mtu(port_.id(), 1500), 0);
  ASSERT_EQ(send(bundle().item(from_peer(1522))), 0);
  ASSERT_EQ(send(bundle().item(from_peer(1523))), 0);
  ASSERT_EQ(peer_.send(from_peer(1528), 0), 0);
  ASSERT_EQ(send(bundle().item(from_peer(1000), 1523)), 0);
  expect_frames({from_peer(1522)});
  EXPECT_EQ(port_.xstat("rx_too_long"), 3u);
}

TEST_F(NetPeer, BadBundles) {
  call();
  const Bytes good = from_peer(60);
  uint64_t bad = 0;
  uint16_t epoch = 0;  // another one each time: numbers are no matter here
  const auto refused = [&](const Bytes& bytes, const std::vector<Bytes>& wanted, const char* why) {
    ASSERT_EQ(peer_.send(bytes, 1), 0) << why;
    EXPECT_EQ(frames(), wanted) << why;
    EXPECT_EQ(port_.xstat("rx_bad_bundles"), ++bad) << why;
  };
  const auto changed = [&](size_t at, uint8_t value) {
    Bytes bytes = BundleBytes(1, ++epoch, 0).item(good).bytes;
    bytes[at] = value;
    return bytes;
  };
  refused(changed(0, 0xE4), {}, "mark");
  refused(changed(1, 0xB0), {}, "mark");
  refused(changed(2, 0), {}, "no items");
  refused(changed(2, 2), {good}, "fewer items than it says");
  refused(changed(2, 255), {good}, "fewer items than it says");
  refused(changed(3, 1), {}, "not zero");
  refused(changed(8, 0), {}, "an item of nothing");
  refused(changed(9, 0x10), {}, "longer than it is");
  refused(changed(10, 1), {}, "not zero");
  refused(changed(11, 0x80), {}, "not zero");
  refused(Bytes(8, 0), {}, "a header alone");
  Bytes alone = BundleBytes(1, ++epoch, 0).bytes;
  refused(alone, {}, "no item");
  alone.resize(16);
  refused(alone, {}, "an item without bytes");
  Bytes cut = BundleBytes(2, ++epoch, 0).item(good).item(good).bytes;
  cut.resize(cut.size() - 8);
  refused(cut, {good}, "cut off");
  // What it does not say is no matter: more items are there than it counts.
  ASSERT_EQ(send(BundleBytes(1, ++epoch, 0).item(good).item(good)), 0);
  expect_frames({good});
  EXPECT_EQ(port_.xstat("rx_bad_bundles"), bad);
}

TEST_F(NetPeer, PartsMakeAFrame) {
  call();
  const Bytes all = from_peer(9000, 5);
  const auto part = [&](uint32_t at, uint32_t end) {
    return Bytes(all.begin() + at, all.begin() + end);
  };
  ASSERT_EQ(send(bundle().item(part(0, 4080), 9000, 0)), 0);
  ASSERT_EQ(send(bundle().item(part(4080, 8160), 9000, 4080)), 0);
  expect_frames({});
  ASSERT_EQ(send(bundle().item(part(8160, 9000), 9000, 8160)), 0);
  expect_frames({all});
  const Bytes small = from_peer(300, 6);
  ASSERT_EQ(send(bundle(3)
                     .item(Bytes(small.begin(), small.begin() + 100), 300, 0)
                     .item(Bytes(small.begin() + 100, small.begin() + 200), 300, 100)
                     .item(Bytes(small.begin() + 200, small.end()), 300, 200)),
            0);
  expect_frames({small});
  EXPECT_EQ(port_.xstat("rx_bad_parts"), 0u);
}

TEST_F(NetPeer, BadParts) {
  call();
  const Bytes a = from_peer(8160, 1);
  const Bytes b = from_peer(8160, 2);
  const auto half = [](const Bytes& all, uint32_t which) {
    return Bytes(all.begin() + which * 4080, all.begin() + (which + 1) * 4080);
  };
  uint64_t bad = 0;
  const auto lost = [&](const char* why) {
    EXPECT_EQ(frames(), std::vector<Bytes>{}) << why;
    EXPECT_EQ(port_.xstat("rx_bad_parts"), bad) << why;
  };
  const auto first = [&] { ASSERT_EQ(send(bundle().item(half(a, 0), 8160, 0)), 0); };
  ASSERT_EQ(send(bundle().item(half(a, 1), 8160, 4080)), 0);
  lost("a second one alone: what it would be of was counted when it was lost");
  first();
  first();
  ++bad;
  lost("two first ones: one is lost");
  ASSERT_EQ(send(bundle().item(half(a, 1), 8160, 4079)), 0);
  ++bad;
  lost("another offset");
  first();
  ASSERT_EQ(send(bundle().item(half(a, 1), 8168, 4080)), 0);
  ++bad;
  lost("another length");
  first();
  ASSERT_EQ(send(bundle().item(Bytes(4088 - 8, 1), 8160, 4080)), 0);
  EXPECT_EQ(frames().size(), 1u) << "of the right lengths";
  const Bytes short_one = from_peer(4000);
  ASSERT_EQ(send(bundle().item(short_one, 4000, 0)), 0);
  ++bad;
  lost("a first one that is all");
  first();
  ASSERT_EQ(send(bundle().item(Bytes(4080, 1), 5000, 4080)), 0);
  ++bad;
  lost("more than there is");
  // Two frames of one length, each of which lost a part: the number of b's second is not next.
  first();
  number_[0] = static_cast<uint16_t>(number_[0] + 2);
  ASSERT_EQ(send(bundle().item(half(b, 1), 8160, 4080)), 0);
  bool dropped = false;
  for (uint32_t i = 0; i < 100 * kTurns && !dropped; ++i) {  // the wait for those between is over
    rte_mbuf* got = nullptr;
    ASSERT_EQ(rte_eth_rx_burst(port_.id(), 0, &got, 1), 0) << "halves of two";
    dropped = port_.xstat("rx_bad_parts") == bad + 1;
  }
  EXPECT_TRUE(dropped);
  ++bad;
  first();
  ASSERT_EQ(send(bundle().item(half(a, 1), 8160, 4080)), 0);
  expect_frames({a});
}

TEST_F(NetPeer, WrongMailboxes) {
  call();
  for (const uint8_t mbox : std::initializer_list<uint8_t>{4, 17, 63}) {
    ASSERT_EQ(peer_.send(from_peer(100), mbox), 0);
  }
  expect_frames({});
  EXPECT_EQ(port_.xstat("rx_bad_mailboxes"), 3u);
  ASSERT_EQ(send(bundle().item(from_peer(100))), 0);
  EXPECT_EQ(frames().size(), 1u);
}

TEST_F(NetPeer, BundlesInAnyOrder) {
  call();
  std::vector<uint16_t> order = {0, 3, 2, 1, 5, 4, 6};
  for (const uint16_t number : order) {
    ASSERT_EQ(send(BundleBytes(1, kEpoch, number).item(from_peer(60, number))), 0);
  }
  std::vector<Bytes> wanted;
  for (uint32_t i = 0; i < 7; ++i) {
    wanted.push_back(from_peer(60, i));
  }
  expect_frames(wanted);
  EXPECT_EQ(port_.xstat("rx_out_of_order"), 3u);
  EXPECT_EQ(port_.xstat("rx_late"), 0u);
  ASSERT_EQ(send(BundleBytes(1, kEpoch, 2).item(from_peer(60))), 0);
  EXPECT_EQ(frames().size(), 1u) << "late, but whole";
  EXPECT_EQ(port_.xstat("rx_late"), 1u);
}

TEST_F(NetPeer, DiesAndComesBackAsAnother) {
  call();
  for (uint16_t number = 0; number < 100; ++number) {
    ASSERT_EQ(send(BundleBytes(1, 1, number).item(from_peer(60, number))), 0);
  }
  ASSERT_EQ(send(BundleBytes(1, 1, 102).item(from_peer(60, 102))), 0);  // waits for 100
  ASSERT_EQ(frames().size(), 100u);
  for (uint16_t number = 0; number < 100; ++number) {
    ASSERT_EQ(send(BundleBytes(1, 2, number).item(from_peer(60, number))), 0);
  }
  EXPECT_EQ(frames().size(), 101u);
  EXPECT_EQ(port_.xstat("rx_late"), 0u);
}

/// mbufs of ports' own that are somewhere.
unsigned own_mbufs_in_use() {
  unsigned count = 0;
  rte_mempool_walk(
      [](rte_mempool* pool, void* sum) {
        const bool own = std::string(pool->name).starts_with("net_rio_rx_");
        *static_cast<unsigned*>(sum) += own ? rte_mempool_in_use_count(pool) : 0;
      },
      &count);
  return count;
}

TEST_F(NetPeer, WhatWaitsComesBackWhenThePortStops) {
  call();
  ASSERT_EQ(send(bundle().item(from_peer(200), 300, 0)), 0);  // a part, copied
  ASSERT_EQ(send(bundle(1, 1).item(frame_bytes(port_.mac(), address(kPeer + 1), 4080), 9000, 0), 1),
            0);  // and one that is handed over
  expect_frames({});
  ASSERT_FALSE(pool_.full());
  const Bytes early = from_peer(60);
  for (uint16_t i = 2; i < 12; ++i) {
    ASSERT_EQ(send(BundleBytes(1, kEpoch, i).item(early)), 0);
  }
  rte_mbuf* got = nullptr;
  ASSERT_EQ(rte_eth_rx_burst(port_.id(), 0, &got, 1), 0) << "they wait for number 1";
  for (uint32_t i = 0; i < 20; ++i) {  // nobody has looked at these
    ASSERT_EQ(peer_.send(from_peer(2000), 0), 0);
  }
  port_.stop();
  EXPECT_TRUE(pool_.full());
  EXPECT_EQ(own_mbufs_in_use(), 0u);
  port_.start();
  EXPECT_GE(own_mbufs_in_use(), 256u) << "the ring's";
  EXPECT_LT(own_mbufs_in_use(), 256u + 16) << "and a few that lie ready";
}

TEST_F(NetPeer, AnyBytesAtAll) {
  call();
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t i = 0; i < 3000; ++i) {
    Bytes bytes = bundle(static_cast<uint8_t>(1 + random() % 4))
                      .item(from_peer(14 + static_cast<uint32_t>(random() % 200)),
                            static_cast<uint16_t>(random() % 3 == 0 ? random() : 0),
                            static_cast<uint16_t>(random() % 3 == 0 ? random() : 0))
                      .bytes;
    for (uint32_t n = static_cast<uint32_t>(random() % 4); n != 0; --n) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    ASSERT_EQ(peer_.send(bytes, static_cast<uint8_t>(random() % 8 == 0 ? 0 : 1),
                         static_cast<uint16_t>(random() % 4)),
              0);
    if (random() % 4 == 0) {
      ASSERT_EQ(peer_.ring(static_cast<uint16_t>(0x0FFF + random() % 0x80),
                           static_cast<uint16_t>(random() % 4)),
                0);
    }
    static_cast<void>(frames());
  }
  ASSERT_EQ(peer_.ring(kCall), 0);
  const Bytes wanted = from_peer(60, 77);
  ASSERT_EQ(send(BundleBytes(1, kEpoch + 1, 0).item(wanted)), 0);
  const auto last = frames();  // and what was waiting
  EXPECT_EQ(std::count(last.begin(), last.end(), wanted), 1);
}

/// The peer stops its shared ring's owner from polling: what it does not take is tried again, and
/// given up after four in a row.
TEST(NetDead, GivenUpAfterFourAndCalledAgain) {
  const Pool pool(4096);
  const Device net("net_rio0", "wire=dead,destid=0x100,peers=0x200,response_timeout_us=1000");
  auto raw = std::make_unique<Device>("raw_rio0", "wire=dead,destid=0x200,qps=1");
  Port port("net_rio0", pool);
  {
    RawPeer peer("raw_rio0", kPort, [&] { port.work(); });
    ASSERT_EQ(peer.ring(kCall), 0);
    ASSERT_TRUE(peer.hears(kAnswer));
  }
  // Its queue pair is closed: nobody takes messages.
  for (uint32_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(port.xstat("tx_no_peer"), 0u);
    ASSERT_TRUE(port.send(port.make(frame_bytes(address(kPeer), port.mac(), 100))));
    for (uint32_t turn = 0; turn < 100 * kTurns && port.xstat("tx_refused") < i; ++turn) {
      port.work();
    }
    ASSERT_EQ(port.xstat("tx_refused"), i);
  }
  ASSERT_TRUE(port.send(port.make(frame_bytes(address(kPeer), port.mac(), 100))));
  EXPECT_EQ(port.xstat("tx_no_peer"), 1u);
  // It is back, and says nothing: the watch calls who was invited.
  RawPeer peer("raw_rio0", kPort, [&] { port.work(); });
  bool called = false;
  for (uint32_t i = 0; i < 100 && !called; ++i) {
    called = peer.hears(kCall);
  }
  EXPECT_TRUE(called);
  ASSERT_EQ(peer.ring(kAnswer), 0);
  for (uint32_t turn = 0; turn < kQuietTurns; ++turn) {
    port.work();
  }
  ASSERT_TRUE(port.send(port.make(frame_bytes(address(kPeer), port.mac(), 100))));
  EXPECT_EQ(port.xstat("tx_no_peer"), 1u);
}

class NetStorm : public NetPeer {
 protected:
  // In a second one, of which a sixteenth comes at once; none that a test waits for.
  NetStorm() : NetPeer(",storm=1") {}
};

TEST_F(NetStorm, FramesForAllAreLimited) {
  call();
  const Bytes all = frame_bytes(kEverybody, address(kPeer), 60);
  auto some = bundle(20);
  for (uint32_t i = 0; i < 20; ++i) {
    some.item(all);
  }
  ASSERT_EQ(send(some), 0);
  const size_t passed = frames().size();
  EXPECT_GE(passed, 1u);
  EXPECT_LT(passed, 20u);
  EXPECT_EQ(port_.xstat("rx_storms"), 20 - passed);
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_EQ(send(bundle().item(from_peer(60))), 0);
  }
  EXPECT_EQ(frames().size(), 20u) << "frames for one are not";
}

class NetNoStorm : public NetPeer {
 protected:
  NetNoStorm() : NetPeer(",storm=0") {}
};

TEST_F(NetNoStorm, ZeroIsNoLimit) {
  call();
  for (uint32_t round = 0; round < 300; ++round) {
    auto some = bundle(50);
    for (uint32_t i = 0; i < 50; ++i) {
      some.item(frame_bytes(kEverybody, address(kPeer), 60));
    }
    ASSERT_EQ(send(some), 0);
    ASSERT_EQ(frames().size(), 50u);
  }
}

class NetMailbox : public NetPeer {
 protected:
  NetMailbox() : NetPeer(",mbox=1") {}
};

TEST_F(NetMailbox, PlainFramesToTheOther) {
  join();
  auto got = sent(to_peer(60));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].mbox, 1);
  ASSERT_EQ(peer_.send(from_peer(64), 1), 0);
  ASSERT_EQ(peer_.send(bundle().item(from_peer(60)).bytes, 0), 0);
  expect_frames({from_peer(64), from_peer(60)});
  call();
  got = sent(to_peer(60));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NE(got[0].mbox, 1) << "bundles";
  EXPECT_LT(got[0].mbox, 4);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net-hostile",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
