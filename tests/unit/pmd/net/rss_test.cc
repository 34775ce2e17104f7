// Hashes are those of Microsoft's "Verifying the RSS Hash Calculation".
#include "pmd/net/rss.hpp"
#include "tests/support/seed.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace rio::pmd {
namespace {

constexpr uint64_t kAddresses = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6;
constexpr uint64_t kTcp = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP;
constexpr uint64_t kUdp = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
constexpr uint8_t kProtocolTcp = 6;
constexpr uint8_t kProtocolUdp = 17;

struct Vector {
  const char* to;
  uint16_t to_port;
  const char* from;
  uint16_t from_port;
  uint32_t hash;       // of addresses
  uint32_t hash_port;  // and ports
};
constexpr Vector kIpv4[] = {
    {"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
    {"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
    {"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
    {"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
    {"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2}};
constexpr Vector kIpv6[] = {
    {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
    {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
    {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985,
     0x02d1feef}};

using Frame = std::vector<uint8_t>;

void put16(Frame* frame, uint16_t value) {
  frame->push_back(static_cast<uint8_t>(value >> 8));
  frame->push_back(static_cast<uint8_t>(value));
}
void put_ports(Frame* frame, const Vector& v) {
  put16(frame, v.from_port);
  put16(frame, v.to_port);
  frame->resize(frame->size() + 16);
}
Frame ethernet(uint16_t type, std::initializer_list<uint16_t> tags = {}) {
  Frame frame(12);
  for (const uint16_t tag : tags) {
    put16(&frame, tag);
    put16(&frame, 7);
  }
  put16(&frame, type);
  return frame;
}
/// Makes a frame. @param fragment the field of that name. @param options words of options.
Frame ipv4(const Vector& v, uint8_t protocol, uint16_t fragment = 0, uint8_t options = 0,
           Frame frame = ethernet(0x0800)) {
  const size_t at = frame.size();
  frame.resize(at + 20);
  frame[at] = static_cast<uint8_t>(0x45 + options);
  frame[at + 6] = static_cast<uint8_t>(fragment >> 8);
  frame[at + 7] = static_cast<uint8_t>(fragment);
  frame[at + 9] = protocol;
  inet_pton(AF_INET, v.from, &frame[at + 12]);
  inet_pton(AF_INET, v.to, &frame[at + 16]);
  frame.resize(frame.size() + 4u * options, 0xEE);
  put_ports(&frame, v);
  return frame;
}
Frame ipv6(const Vector& v, uint8_t protocol) {
  Frame frame = ethernet(0x86DD);
  const size_t at = frame.size();
  frame.resize(at + 40);
  frame[at] = 0x60;
  frame[at + 6] = protocol;
  inet_pton(AF_INET6, v.from, &frame[at + 8]);
  inet_pton(AF_INET6, v.to, &frame[at + 24]);
  put_ports(&frame, v);
  return frame;
}
uint32_t hash(const Rss& rss, const Frame& frame) {
  return rss.hash(frame.data(), static_cast<uint32_t>(frame.size()));
}
Rss rss_of(uint64_t types) {
  Rss rss;
  rss.types = types;
  return rss;
}

TEST(Rss, ComputesKnownHashes) {
  const Rss rss = rss_of(kAddresses | kTcp);
  for (const Vector& v : kIpv4) {
    EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp)), v.hash_port) << v.to;
    EXPECT_EQ(hash(rss, ipv4(v, kProtocolUdp)), v.hash) << "UDP was not selected";
    EXPECT_EQ(hash(rss, ipv4(v, 1)), v.hash) << v.to;
  }
  for (const Vector& v : kIpv6) {
    EXPECT_EQ(hash(rss, ipv6(v, kProtocolTcp)), v.hash_port) << v.to;
    EXPECT_EQ(hash(rss, ipv6(v, kProtocolUdp)), v.hash) << v.to;
  }
}

TEST(Rss, HashesTheSelectedTypes) {
  const Vector& v = kIpv4[0];
  EXPECT_EQ(hash(rss_of(kAddresses), ipv4(v, kProtocolTcp)), v.hash);
  EXPECT_EQ(hash(rss_of(kUdp), ipv4(v, kProtocolUdp)), v.hash_port);
  EXPECT_EQ(hash(rss_of(kUdp), ipv4(v, kProtocolTcp)), 0u);
  EXPECT_EQ(hash(rss_of(0), ipv4(v, kProtocolTcp)), 0u);
  EXPECT_EQ(hash(rss_of(RTE_ETH_RSS_IPV6), ipv4(v, kProtocolTcp)), 0u);
  EXPECT_EQ(hash(rss_of(RTE_ETH_RSS_IPV4), ipv6(kIpv6[0], kProtocolTcp)), 0u);
}

TEST(Rss, FragmentsHaveNoPorts) {
  const Rss rss = rss_of(kAddresses | kTcp);
  const Vector& v = kIpv4[1];
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0x2000)), v.hash) << "more follow";
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0x0001)), v.hash) << "not the first";
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0x1FFF)), v.hash);
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0x4000)), v.hash_port) << "must not be fragmented";
}

TEST(Rss, FindsPortsBehindOptionsAndTags) {
  const Rss rss = rss_of(kAddresses | kTcp);
  const Vector& v = kIpv4[2];
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0, 10)), v.hash_port);
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0, 0, ethernet(0x0800, {0x8100}))), v.hash_port);
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0, 0, ethernet(0x0800, {0x88A8, 0x8100}))),
            v.hash_port);
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0, 0, ethernet(0x0800, {0x8100, 0x8100, 0x8100}))), 0u)
      << "more tags than Ethernet has";
  EXPECT_EQ(hash(rss, ipv4(v, kProtocolTcp, 0, 0, ethernet(0x0806))), 0u) << "not IP";
}

TEST(Rss, TruncatedFramesAreNotHashed) {
  const Rss rss = rss_of(kAddresses | kTcp);
  const Frame four = ipv4(kIpv4[0], kProtocolTcp);
  for (uint32_t length = 0; length < four.size(); ++length) {
    const std::vector<uint8_t> exact(four.begin(), four.begin() + length);  // ASan watches its end
    EXPECT_EQ(hash(rss, exact), length < 34   ? 0
                                : length < 38 ? kIpv4[0].hash
                                              : kIpv4[0].hash_port)
        << length;
  }
  const Frame six = ipv6(kIpv6[0], kProtocolTcp);
  for (uint32_t length = 0; length < six.size(); ++length) {
    const std::vector<uint8_t> exact(six.begin(), six.begin() + length);
    EXPECT_EQ(hash(rss, exact), length < 54   ? 0
                                : length < 58 ? kIpv6[0].hash
                                              : kIpv6[0].hash_port)
        << length;
  }
}

TEST(Rss, AnyBytesAreSafe) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Rss rss = rss_of(Rss::kTypes);
  for (uint32_t i = 0; i < 20'000; ++i) {
    Frame frame(random() % 80);
    for (uint8_t& byte : frame) {
      byte = static_cast<uint8_t>(random());
    }
    if (frame.size() >= 14) {
      const uint16_t types[] = {0x0800, 0x86DD, 0x8100, 0x88A8};
      const uint16_t type = types[random() % 4];
      frame[12] = static_cast<uint8_t>(type >> 8);
      frame[13] = static_cast<uint8_t>(type);
    }
    EXPECT_LT(rss.queue_of(hash(rss, frame)), 1);
  }
}

TEST(Rss, ANewKeyChangesHashes) {
  Rss rss = rss_of(kAddresses);
  std::vector<uint8_t> key(Rss::kKeyBytes);
  rss.set_key(key.data());
  EXPECT_EQ(hash(rss, ipv4(kIpv4[0], kProtocolTcp)), 0u) << "the key is zero";
  // The hash of the top bit alone is the key's first word: 128.0.0.0 to 0.0.0.0.
  key = {0x12, 0x34, 0x56, 0x78};
  key.resize(Rss::kKeyBytes, 0xAA);
  rss.set_key(key.data());
  EXPECT_EQ(std::memcmp(rss.key(), key.data(), key.size()), 0);
  EXPECT_EQ(hash(rss, ipv4({"0.0.0.0", 0, "128.0.0.0", 0, 0, 0}, 1)), 0x12345678u);
}

TEST(Rss, TheTableChoosesTheQueue) {
  Rss rss;
  EXPECT_EQ(rss.queue_of(0xFFFFFFFF), 0);
  rss.spread(3);
  EXPECT_EQ(rss.queue_of(0), 0);
  EXPECT_EQ(rss.queue_of(5), 2);
  EXPECT_EQ(rss.queue_of(127), 1);
  EXPECT_EQ(rss.queue_of(128), 0) << "seven bits count";
  rss.table[5] = 9;
  EXPECT_EQ(rss.queue_of(0xFFFFFF85), 9);
}

}  // namespace
}  // namespace rio::pmd
