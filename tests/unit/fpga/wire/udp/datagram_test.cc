#include "fpga/wire/udp/datagram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace rio::wire::udp {
namespace {

// Written by hand from docs/decisions/0021-wire-over-udp.md.
constexpr std::array<uint8_t, 69> kBytes = {
    'R',  'U',  1,    1,    0x44, 0x33, 0x22, 0x11,  // magic, version, asks, session
    8,    7,    6,    5,    4,    3,    2,    1,     // number
    0xfe, 0xff, 0xff, 0xff, 0,    2,    0,    0,    5, 0, 0, 0, 0, 0, 0, 0x80,  // requests heard
    9,    0,    0,    0,    64,   0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,     // responses heard
    0xdd, 0xcc, 0xbb, 0xaa, 3,    0,    0,    0,                                // requests, bytes
    7,    0,    0,    0,    2,    0,    0,    0,                                // responses, bytes
    'a',  'b',  'c',  'd',  'e'};

Datagram written() {
  Datagram datagram;
  datagram.session = 0x11223344;
  datagram.number = 0x0102030405060708;
  datagram.asks = true;
  datagram.heard[0] = {0xfffffffe, 512, 0x8000000000000005};
  datagram.heard[1] = {9, 64, 0};
  datagram.parts[0] = {0xaabbccdd, std::span(kBytes).subspan(64, 3)};
  datagram.parts[1] = {7, std::span(kBytes).last(2)};
  return datagram;
}

TEST(UdpDatagram, HasTheDocumentedBytes) {
  std::array<uint8_t, 69> out{};
  ASSERT_EQ(encode(written(), out), out.size());
  EXPECT_EQ(out, kBytes);
}

TEST(UdpDatagram, IsParsed) {
  Datagram got;
  ASSERT_EQ(decode(kBytes, &got), 0);
  const Datagram want = written();
  EXPECT_EQ(got.session, want.session);
  EXPECT_EQ(got.number, want.number);
  EXPECT_EQ(got.heard, want.heard);
  EXPECT_EQ(got.asks, want.asks);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(got.parts[lane].unit, want.parts[lane].unit);
    EXPECT_TRUE(std::ranges::equal(got.parts[lane].payload, want.parts[lane].payload));
  }
}

TEST(UdpDatagram, ImpossibleOnesAreRefused) {
  Datagram got;
  for (const size_t at :
       {0u, 1u, 2u, 3u, 23u, 39u, 52u, 55u, 60u}) {  // 23, 39: a window beyond the longest
    auto bytes = kBytes;
    bytes[at] ^= 0x40;
    EXPECT_EQ(decode(bytes, &got), -EPROTO) << at;
  }
  for (size_t length = 0; length < kBytes.size(); ++length) {
    EXPECT_EQ(decode(std::span(kBytes).first(length), &got), -EPROTO) << length;
  }
  EXPECT_EQ(decode(std::vector<uint8_t>(kDatagramBytesMax + 1), &got), -EPROTO);
}

TEST(UdpDatagram, IsNotWrittenWithoutRoom) {
  std::array<uint8_t, 68> out{};
  EXPECT_EQ(encode(written(), out), 0u);
  std::vector<uint8_t> large(kPayloadBytesMax + 1);
  Datagram datagram;
  datagram.parts[1].payload = large;
  std::vector<uint8_t> room(2 * large.size());
  EXPECT_EQ(encode(datagram, room), 0u);
}

}  // namespace
}  // namespace rio::wire::udp
