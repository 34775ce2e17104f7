// A port, and a peer that behaves like Linux's rionet, or like another port.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_peer.hpp"

namespace rio::test {
namespace {

TEST_F(NetPeer, APortThatStartsJoinsAndCalls) {
  port_.stop();
  static_cast<void>(peer_.bells());
  port_.start();
  ASSERT_TRUE(peer_.hears(kCall));
  const auto bells = peer_.bells();
  ASSERT_EQ(bells.size(), 2u);
  EXPECT_EQ(bells[0], (RawPeer::Bell{kPort, kJoin}));
  EXPECT_EQ(bells[1], (RawPeer::Bell{kPort, kCall}));
  ASSERT_EQ(peer_.ring(kJoin), 0);
  ASSERT_TRUE(peer_.hears(kCall)) << "a joined peer learns that the port is there";
  EXPECT_EQ(port_.xstat("rx_joins"), 1u);
  ASSERT_EQ(peer_.ring(kJoin), 0);
  port_.stop();
  ASSERT_TRUE(peer_.hears(kLeave));
}

TEST_F(NetPeer, PlainFramesOfEachLengthPass) {
  join();
  for (uint32_t length = 14; length <= 4096; ++length) {
    const Bytes bytes = to_peer(length);
    const auto got = sent(bytes);
    ASSERT_EQ(got.size(), 1u) << length;
    EXPECT_EQ(got[0].mbox, 0);
    EXPECT_EQ(got[0].source, kPort);
    ASSERT_EQ(got[0].bytes.size(), (length + 7) & ~7u);
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), got[0].bytes.begin())) << length;
  }
  for (uint32_t length = 14; length <= 4096; ++length) {
    Bytes bytes = from_peer(length);
    ASSERT_EQ(peer_.send(bytes, 0), 0);
    Bytes got = take(port_.receive([this] { port_.work(); }));
    ASSERT_EQ(got.size(), (length + 7) & ~7u) << "the card reports lengths in steps of 8";
    got.resize(length);
    ASSERT_EQ(got, bytes) << length;
  }
  EXPECT_EQ(port_.xstat("tx_bounced"), 0u);
}

TEST_F(NetPeer, PlainFramesMayHaveSeveralSegments) {
  join();
  const std::vector<std::vector<uint32_t>> cases = {
      {800}, {800, 1600}, {800, 1600, 2400}, {801}, {8, 16, 24, 32, 40}};
  const uint64_t bounced[] = {0, 0, 1, 2, 3};
  for (size_t i = 0; i < cases.size(); ++i) {
    const Bytes bytes = to_peer(3000);
    const auto got = sent(bytes, cases[i]);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].bytes, bytes);
    EXPECT_EQ(port_.xstat("tx_bounced"), bounced[i]) << i;
  }
  ASSERT_TRUE(port_.send(port_.make(to_peer(4097), {4096})));
  EXPECT_EQ(port_.xstat("tx_bad_lengths"), 1u) << "a message holds no more";
}

TEST_F(NetPeer, BundlesHaveTheseBytes) {
  call();
  const Bytes bytes = to_peer(61);
  const auto got = sent(bytes);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].mbox, 2);
  const Bytes& all = got[0].bytes;
  ASSERT_EQ(all.size(), 8u + 8 + 64);
  EXPECT_EQ(Bytes(all.begin(), all.begin() + 4), (Bytes{0xE5, 0xB1, 1, 0}));
  EXPECT_EQ(Bytes(all.begin() + 6, all.begin() + 16), (Bytes{0, 0, 61, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Bytes(all.begin() + 16, all.begin() + 77), bytes);
  EXPECT_EQ(Bytes(all.begin() + 77, all.end()), Bytes(3)) << "the padding is zero";
  const auto second = sent(to_peer(2000));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(Bytes(second[0].bytes.begin() + 4, second[0].bytes.begin() + 8),
            (Bytes{all[4], all[5], 1, 0}))
      << "equal epoch, next number";
  const auto parts = sent(to_peer(9000), {4096, 8192}, 3);
  ASSERT_EQ(parts.size(), 3u);
  const uint16_t wanted[][2] = {{4080, 0}, {4080, 4080}, {840, 8160}};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Bytes& part = parts[i].bytes;
    EXPECT_EQ(part[6], 2 + i);
    EXPECT_EQ(part[8] | part[9] << 8, wanted[i][0]);
    EXPECT_EQ(part[12] | part[13] << 8, 9000);
    EXPECT_EQ(part[14] | part[15] << 8, wanted[i][1]);
  }
  EXPECT_EQ(port_.xstat("tx_bounced"), 0u);
}

TEST_F(NetPeer, ABundleHoldsSeveralFrames) {
  call();
  std::vector<Bytes> wanted;
  auto some = bundle(12);
  for (uint32_t i = 0; i < 12; ++i) {
    wanted.push_back(from_peer(14 + 23 * i, i));
    some.item(wanted.back());
  }
  ASSERT_EQ(send(some), 0);
  expect_frames(wanted);
}

TEST_F(NetPeer, QueuesBehindAPortSendForIt) {
  call(2);
  for (uint16_t qp = 1; qp <= 3; ++qp) {
    ASSERT_EQ(send(bundle(1, qp).item(from_peer(100, qp)), qp), 0);
    ASSERT_EQ(peer_.send(from_peer(2000, qp), 0, qp), 0);
    expect_frames(qp <= 2 ? std::vector{from_peer(100, qp), from_peer(2000, qp)}
                          : std::vector<Bytes>{});
  }
  EXPECT_EQ(port_.xstat("rx_spoofed"), 2u) << "the third belongs to no port";
  ASSERT_EQ(send(bundle(1, 3).item(frame_bytes(port_.mac(), address(kPeer + 3), 100)), 3), 0);
  EXPECT_EQ(frames().size(), 1u) << "only its own";
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net-peer",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
