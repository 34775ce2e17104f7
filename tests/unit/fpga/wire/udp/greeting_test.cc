#include "fpga/wire/udp/datagram.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace rio::wire::udp {
namespace {

Greeting written() {
  Greeting greeting;
  greeting.kind = kKindAccept;
  greeting.to_session = 11;
  greeting.member = {1};
  greeting.challenge = {2};
  greeting.echo = {3};
  greeting.session = 12;
  greeting.first_id = 13;
  greeting.ids = 4;
  greeting.datagram_bytes = 1472;
  greeting.fabric = fabric_mark("lab");
  greeting.reason = Reason::kTaken;
  return greeting;
}

[[nodiscard]] Key key_of(const std::string& text) {
  Key key;
  std::string error;
  EXPECT_EQ(Key::from_text(text, &key, &error), 0) << error;
  return key;
}

[[nodiscard]] std::vector<uint8_t> bytes_of(const Greeting& greeting, const Key& key,
                                            size_t bytes) {
  std::vector<uint8_t> out(2000);
  out.resize(encode(greeting, key, bytes, out));
  return out;
}

TEST(UdpGreeting, IsParsedAsWrittenAndHasTheWantedLength) {
  for (const Key& key : {Key(), key_of("0123456789abcdef")}) {
    std::vector<uint8_t> bytes = bytes_of(written(), key, 1472);
    EXPECT_EQ(bytes.size(), 1472u);
    Greeting got;
    ASSERT_EQ(decode(bytes, key, &got), 0);
    EXPECT_EQ(got, written());
    EXPECT_EQ(bytes_of(written(), key, 0).size(), kGreetingBytes + key.tag_bytes());
  }
}

TEST(UdpGreeting, OtherKeysDoNotOpenIt) {
  const Key key = key_of("0123456789abcdef");
  Greeting got;
  std::vector<uint8_t> bytes = bytes_of(written(), key, 300);
  EXPECT_EQ(decode(bytes, key_of("0123456789abcdeg"), &got), -EACCES);
  bytes = bytes_of(written(), Key(), 300);
  EXPECT_EQ(decode(bytes, key, &got), -EACCES);
  bytes = bytes_of(written(), key, 300);
  EXPECT_NE(decode(bytes, Key(), &got), 0);
}

TEST(UdpGreeting, ImpossibleOnesAreRefused) {
  const std::vector<uint8_t> good = bytes_of(written(), Key(), 0);
  Greeting got;
  // magic, version, kind, count of destIDs, first destID, reason, zeros
  for (const size_t at : {0u, 2u, 3u, 90u, 105u, 108u, 111u}) {
    std::vector<uint8_t> bytes = good;
    bytes[at] ^= 0x80;
    EXPECT_EQ(decode(bytes, Key(), &got), -EPROTO) << at;
  }
  std::vector<uint8_t> none = good;
  none[88] = 0;
  EXPECT_EQ(decode(none, Key(), &got), -EPROTO);
  for (size_t length = 0; length < good.size(); ++length) {
    std::vector<uint8_t> bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_EQ(decode(bytes, Key(), &got), -EPROTO) << length;
  }
}

TEST(UdpGreeting, AllKindsAndReasonsAreParsed) {
  Greeting greeting = written();
  Greeting got;
  for (uint8_t kind = kKindHello; kind <= kKindAsk; ++kind) {
    greeting.kind = kind;
    for (uint32_t reason = 0; reason < kReasons; ++reason) {
      greeting.reason = static_cast<Reason>(reason);
      std::vector<uint8_t> bytes = bytes_of(greeting, Key(), 0);
      ASSERT_EQ(decode(bytes, Key(), &got), 0);
      EXPECT_EQ(got, greeting);
    }
  }
  std::vector<uint8_t> next = bytes_of(greeting, Key(), 0);
  next[kKindAt] = kKindAsk + 1;
  EXPECT_EQ(decode(next, Key(), &got), -EPROTO);
}

TEST(UdpGreeting, NamesOfFabricsDiffer) {
  EXPECT_NE(fabric_mark("lab"), fabric_mark("lab2"));
  EXPECT_NE(fabric_mark(""), fabric_mark("a"));
}

}  // namespace
}  // namespace rio::wire::udp
