/// @file
/// A port and a raw device on its wire: the fixture for tests of peers' frames.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/eal/net_port.hpp"

namespace rio::test {

inline constexpr uint32_t kPort = 0x100;
inline constexpr uint32_t kPeer = 0x200;
inline constexpr uint16_t kJoin = 0x1000;
inline constexpr uint16_t kLeave = 0x1001;
inline constexpr uint16_t kCall = 0x1020;
inline constexpr uint16_t kAnswer = 0x1040;
inline constexpr uint16_t kEpoch = 0x7777;

/// Takes all mbufs but some, while it lives.
class Hoard {
 public:
  Hoard(const Pool& pool, uint32_t left) {
    while (rte_mempool_avail_count(pool.get()) > left) {
      held_.push_back(rte_pktmbuf_alloc(pool.get()));
    }
  }
  ~Hoard() { give(static_cast<uint32_t>(held_.size())); }
  void give(uint32_t count) {
    for (; count != 0; --count) {
      rte_pktmbuf_free(held_.back());
      held_.pop_back();
    }
  }

 private:
  std::vector<rte_mbuf*> held_;
};

class NetPeer : public testing::Test {
 protected:
  explicit NetPeer(const std::string& args = "",
                   const PortConf& conf = {.mtu = 9000, .scatter = true})
      : net_("net_rio0", "wire=peer,destid=0x100,peers=0x200" + args),
        port_("net_rio0", pool_, conf) {}

  void join() {
    ASSERT_EQ(peer_.ring(kJoin), 0);
    ASSERT_TRUE(peer_.hears(kCall)) << "a peer that joins is called";
  }
  /// Makes the peer accept bundles from now on.
  void call(uint16_t more = 0) {
    ASSERT_EQ(peer_.ring(static_cast<uint16_t>(kCall | more)), 0);
    ASSERT_TRUE(peer_.hears(kAnswer));
  }
  [[nodiscard]] Bytes from_peer(uint32_t length, uint32_t seed = 0) const {
    return frame_bytes(port_.mac(), address(kPeer), length, seed);
  }
  [[nodiscard]] Bytes to_peer(uint32_t length, uint32_t seed = 0) const {
    return frame_bytes(address(kPeer), port_.mac(), length, seed);
  }
  /// Frames that the port returns, until no more come.
  std::vector<Bytes> frames() {
    std::vector<Bytes> all;
    while (rte_mbuf* const got = port_.receive([] {}, kQuietTurns)) {
      all.push_back(take(got));
    }
    return all;
  }
  std::vector<RawPeer::Message> sent(const Bytes& bytes, const std::vector<uint32_t>& cuts = {},
                                     size_t messages = 1) {
    std::vector<RawPeer::Message> all;
    if (!port_.send_now(port_.make(bytes, cuts), [this] { port_.work(); })) {
      return all;
    }
    for (uint32_t turn = 0; turn < kTurns && all.size() < messages; ++turn) {
      const auto more = peer_.messages();
      all.insert(all.end(), more.begin(), more.end());
      port_.work();
    }
    return all;
  }
  /// A bundle to be filled, or spoilt.
  [[nodiscard]] BundleBytes bundle(uint8_t items = 1, uint16_t qp = 0) {
    return {items, kEpoch, number_[qp]++};
  }
  int send(const BundleBytes& bundle, uint16_t qp = 0) { return peer_.send(bundle.bytes, 1, qp); }
  /// Expects exactly these frames.
  void expect_frames(const std::vector<Bytes>& wanted) { EXPECT_EQ(frames(), wanted); }

  Pool pool_{4096};
  Device net_;
  Device raw_{"raw_rio0", "wire=peer,destid=0x200,qps=4"};
  Port port_;
  RawPeer peer_{"raw_rio0", kPort, [this] { port_.work(); }};
  uint16_t number_[4] = {};  // of each queue pair's next bundle
};

}  // namespace rio::test
