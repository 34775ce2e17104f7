#include "fpga/wire/udp/contact.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kMs = 1'000'000;

Attempt attempt(uint8_t challenge, uint32_t session) {
  Attempt made;
  made.challenge = {challenge};
  made.session = session;
  return made;
}

struct Two {
  Self left{{1}, 0, 1, 0, {}};
  Self right{{2}, 0, 1, 0, {}};
  Attempt from_left = attempt(10, 100);
  Attempt from_right = attempt(20, 200);
};

TEST(UdpContact, HelloAndAcceptAgreeOnSessionsAndSize) {
  Two two;
  const Greeting hello = two.from_left.say(kKindHello, two.left, 0);
  two.from_right.hear(hello, 1400);
  const Greeting accept = two.from_right.say(kKindAccept, two.right, 1400);
  ASSERT_TRUE(two.from_left.answered_by(accept));
  two.from_left.hear(accept, accept.datagram_bytes);
  const Agreed left = two.from_left.agree(Key());
  const Agreed right = two.from_right.agree(Key());
  EXPECT_EQ(left.their_session, right.session);
  EXPECT_EQ(right.their_session, left.session);
  EXPECT_EQ(left.datagram_bytes, 1400u);
  EXPECT_EQ(right.datagram_bytes, 1400u);
}

TEST(UdpContact, CrossedHellosMakeOneConnectionWithTheSameKeys) {
  Two two;
  Key key;
  std::string error;
  ASSERT_EQ(Key::from_text("0123456789abcdef", &key, &error), 0);
  const Greeting from_left = two.from_left.say(kKindHello, two.left, 0);
  const Greeting from_right = two.from_right.say(kKindHello, two.right, 0);
  two.from_left.hear(from_right, 1300);
  two.from_right.hear(from_left, 1300);
  const Greeting to_right = two.from_left.say(kKindAccept, two.left, 1300);
  const Greeting to_left = two.from_right.say(kKindAccept, two.right, 1300);
  ASSERT_TRUE(two.from_left.answered_by(to_left));
  ASSERT_TRUE(two.from_right.answered_by(to_right));
  two.from_left.hear(to_left, to_left.datagram_bytes);
  two.from_right.hear(to_right, to_right.datagram_bytes);
  const Agreed left = two.from_left.agree(key);
  const Agreed right = two.from_right.agree(key);
  EXPECT_EQ(left.out_key, right.in_key);
  EXPECT_EQ(left.in_key, right.out_key);
  EXPECT_NE(left.in_key, left.out_key);
}

TEST(UdpContact, AnswersToAnotherAttemptAreIgnored) {
  Two two;
  two.from_right.hear(two.from_left.say(kKindHello, two.left, 0), 1300);
  Greeting accept = two.from_right.say(kKindAccept, two.right, 1300);
  accept.echo[3] ^= 1;
  EXPECT_FALSE(two.from_left.answered_by(accept));
  accept.echo[3] ^= 1;
  accept.to_session += 1;
  EXPECT_FALSE(two.from_left.answered_by(accept));
}

TEST(UdpContact, ARestartedPeerIsAnotherPeer) {
  Two two;
  const Greeting hello = two.from_left.say(kKindHello, two.left, 0);
  EXPECT_FALSE(two.from_right.same(hello));
  two.from_right.hear(hello, 1300);
  EXPECT_TRUE(two.from_right.same(hello));
  Greeting other = hello;
  other.challenge[0] ^= 1;
  EXPECT_FALSE(two.from_right.same(other));
  other = hello;
  other.member[0] ^= 1;
  EXPECT_FALSE(two.from_right.same(other));
}

TEST(UdpContact, SizesOfDatagramsAreBounded) {
  Two two;
  Greeting accept = two.from_right.say(kKindAccept, two.right, 0xffffffff);
  two.from_left.hear(accept, accept.datagram_bytes);
  EXPECT_EQ(two.from_left.agree(Key()).datagram_bytes, kDatagramMax);
  accept.datagram_bytes = 1;
  two.from_left.hear(accept, accept.datagram_bytes);
  EXPECT_EQ(two.from_left.agree(Key()).datagram_bytes, kDatagramMin);
}

TEST(UdpCalls, BecomeRarerAndAreSometimesShort) {
  Calls calls;
  EXPECT_FALSE(calls.calling());
  calls.begin(7 * kMs);
  EXPECT_EQ(calls.due_ns(), 7 * kMs);
  uint64_t now_ns = 7 * kMs;
  uint64_t before = 0;
  uint32_t longs = 0;
  uint32_t shorts = 0;
  while (!calls.in_vain(now_ns)) {
    const uint32_t bytes = calls.call(now_ns, 1472);
    (bytes == 1472 ? longs : shorts) += 1;
    EXPECT_TRUE(bytes == 1472 || bytes == kDatagramMin);
    const uint64_t wait = calls.due_ns() - now_ns;
    EXPECT_GE(wait, before);
    before = wait;
    now_ns = calls.due_ns();
  }
  EXPECT_GE(longs, 4u);
  EXPECT_GE(shorts, 4u);
  EXPECT_LE(before, 500 * kMs);
}

}  // namespace
}  // namespace rio::wire::udp
