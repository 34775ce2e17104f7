// A card that writes any bytes harms its own session only.
#include "tests/unit/lib/msg/hostile_fixture.hpp"

namespace rio::msg::test {
namespace {

TEST_F(Hostile, ShortMessages) {
  for (size_t bytes = 1; bytes < kHeaderBytes; ++bytes) {
    foe_sends(std::vector<uint8_t>(bytes, 0xFF));
  }
  foe_sends(std::vector<uint8_t>(8, 0));
  // The card rounds lengths up: 9 bytes arrive as 16, the length of a header.
  EXPECT_EQ(own_.port->stats().bad, kHeaderBytes);
  EXPECT_EQ(cut_off(), 0u);
}

TEST_F(Hostile, SessionMessagesOfAnyLength) {
  std::vector<uint8_t> hello = Wire::session(Kind::kHello, 0, 7, 0);
  hello.resize(kHeaderBytes + 8);
  foe_sends(hello);
  hello.resize(kHeaderBytes + 40);
  foe_sends(hello);
  expect_dropped(2);
}

TEST_F(Hostile, AnotherReleasesHello) {
  foe_sends(Wire::session(Kind::kHello, 0, 7, 0, 0, kMagic + 1));
  expect_dropped();
}

TEST_F(Hostile, AHelloWithoutAKey) {
  foe_sends(Wire::session(Kind::kHello, 0, 0, 0));
  expect_dropped();
}

TEST_F(Hostile, KindsThatDoNotExist) {
  for (const uint32_t kind : {14u, 15u, 20u, 30u}) {
    begin(kFoeKey + kind);
    foe_says(static_cast<Kind>(kind));
  }
  EXPECT_EQ(cut_off(), 4u);
  for (const uint32_t kind : {35u, 64u, 255u}) {
    foe_sends(Wire::session(static_cast<Kind>(kind), 0, kFoeKey, key_));
  }
  EXPECT_EQ(own_.port->stats().bad, 3u);
}

TEST_F(Hostile, ContextsThatCannotBe) {
  for (const uint32_t kind : {0u, 3u, 16u, 17u, 18u, 19u, 31u}) {
    for (const uint32_t id : {64u, 0x8000u, 0xFFFFu}) {
      begin(kFoeKey + kind + id);
      foe_sends(Wire::message(key_, number_, id, 0, 0, static_cast<Kind>(kind)));
      begin(kFoeKey + kind + id + 1);
      foe_sends(Wire::message(key_, number_, 0, id, 0, static_cast<Kind>(kind)));
    }
  }
  EXPECT_EQ(cut_off(), 42u);
}

TEST_F(Hostile, DataForAContextThatWasNotOpened) {
  foe_says(Kind::kData, "not asked");
  expect_dropped();
  foe_says(Kind::kData, "not asked", 9);
  expect_dropped(2);
}

TEST_F(Hostile, PaddingThatIsLongerThanTheMessage) {
  open_context();
  foe_sends(Wire::message(key_, number_, 0, 0, 0, Kind::kData, "", 7));
  expect_cut_off();
}

TEST_F(Hostile, PaddingBeyondSeven) {
  open_context();
  std::vector<uint8_t> bytes = Wire::message(key_, number_, 0, 0, 0, Kind::kData, "12345678");
  bytes[15] = 8;
  foe_sends(bytes);
  expect_cut_off();
}

TEST_F(Hostile, BeyondItsCredit) {
  const uint16_t credit = open_context();
  for (uint32_t i = 0; i < credit; ++i) {
    foe_says(Kind::kData, "in time");
  }
  EXPECT_EQ(own_.inbox().count(), credit);
  foe_says(Kind::kData, "too much");
  EXPECT_TRUE(work_until([&] { return cut_off() == 1; }));
  EXPECT_EQ(own_.inbox().count(), credit);
}

TEST_F(Hostile, BeyondItsCreditAndEarly) {
  const uint16_t credit = open_context();
  const uint32_t free = own_.port->unshared();
  for (uint32_t i = 1; i <= credit; ++i) {
    foe_sends(Wire::message(key_, number_ + i, 0, 0, 0, Kind::kData, "early"));
  }
  EXPECT_EQ(cut_off(), 0u);
  EXPECT_EQ(own_.port->stats().early, credit);
  expect_friend_unharmed();
  foe_sends(Wire::message(key_, number_ + credit + 1, 0, 0, 0, Kind::kData, "early"));
  expect_cut_off();
  EXPECT_EQ(own_.port->unshared(), free + credit);
}

// The missing message never comes. Meanwhile early control messages, which need no credit, hold no
// buffers.
TEST_F(Hostile, EarlyControlHoldsNoBuffer) {
  for (uint32_t i = 1; i <= Link::kBareMax; ++i) {
    foe_sends(Wire::message(key_, number_ + i, i & 63, 0, 0, Kind::kOpen));
  }
  EXPECT_EQ(cut_off(), 0u);
  expect_friend_unharmed();
  foe_sends(Wire::message(key_, number_ + Link::kBareMax + 1, 0, 0, 0, Kind::kOpen));
  expect_cut_off();
}

TEST_F(Hostile, EarlyDataThatBecomesWelcomeLater) {
  const uint32_t open = number_++;
  foe_says(Kind::kData, "too early");  // it is early and without credit, so only its header is kept
  foe_sends(Wire::message(key_, open, 0, 0, 0, Kind::kOpen));
  expect_cut_off();
}

TEST_F(Hostile, ANumberFarAhead) {
  foe_sends(Wire::message(key_, number_ + Link::kWindow, 0, 0, 0, Kind::kOpen));
  expect_cut_off();
}

TEST_F(Hostile, NumbersOfThePast) {
  foe_says(Kind::kOpen);
  for (const uint32_t back : {1u, 2u, 1000u, 1u << 20, 1u << 31}) {
    foe_sends(Wire::message(key_, number_ - back, 0, 0, 0, Kind::kOpen));
  }
  EXPECT_EQ(own_.port->stats().twice, 5u);
  EXPECT_EQ(cut_off(), 0u);
}

TEST_F(Hostile, AnEarlyMessageTwice) {
  const uint16_t credit = open_context();
  EXPECT_GT(credit, 2u);
  for (int i = 0; i < 3; ++i) {
    foe_sends(Wire::message(key_, number_ + 1, 0, 0, 0, Kind::kData, "second"));
  }
  foe_says(Kind::kData, "first");
  EXPECT_EQ(own_.port->stats().twice, 2u);
  ASSERT_EQ(own_.inbox().count(), 2u);
  EXPECT_EQ(own_.take(), "first");
  EXPECT_EQ(own_.take(), "second");
}

// While an early message waits, the fast path is off; it must not accept a wrong key either.
TEST_F(Hostile, TheKeyOfNoSession) {
  open_context();
  foe_sends(Wire::message(key_, number_ + 1, 0, 0, 0, Kind::kData, "second"));
  for (const uint32_t key : {0u, key_ & 0xFFFF, ~0u, 0xFFFFu}) {
    foe_sends(Wire::message(key, number_, 0, 0, 0, Kind::kData, "forged"));
  }
  EXPECT_TRUE(own_.inbox().empty());
  foe_says(Kind::kData, "first");
  ASSERT_EQ(own_.inbox().count(), 2u);
  EXPECT_EQ(own_.take(), "first");
  EXPECT_EQ(own_.take(), "second");
}

/// Forged messages with the friend's key. The port sends that key only to the friend, so the test
/// reads it from the port.
TEST_F(Hostile, TheKeyOfAnother) {
  Link* const link = own_.port->link(kFriend);
  Link* const back = friend_.port->link(kPort);
  for (uint32_t ahead = 0; ahead < 3; ++ahead) {
    const auto number = static_cast<uint32_t>(back->next_out >> 32) + ahead;
    foe_sends(Wire::message(link->keys.local, number, 0, 0, 0, Kind::kData, "forged"));
    foe_sends(Wire::message(link->keys.local, number, 0, 0, 0, Kind::kOpen));
  }
  EXPECT_EQ(own_.port->stats().bad, 6u);
  EXPECT_EQ(cut_off(), 0u);
  EXPECT_EQ(foe_hears(Kind::kReset).session, link->keys.local);
  foe_sends(Wire::session(Kind::kReset, 0, link->keys.remote, 0));
  EXPECT_EQ(link->state, LinkState::kUp);
  EXPECT_EQ(back->state, LinkState::kUp);
}

}  // namespace
}  // namespace rio::msg::test
