// A card that sends any session message: floods, and answers to questions that were never asked.
#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {
namespace {

/// A port, a friendly peer of it, and a hostile one.
class HostileSession : public Net {
 protected:
  HostileSession() {
    EXPECT_EQ(send(friend_, there_, "before"), 0);
    EXPECT_EQ(receive(own_), "before");
  }
  ~HostileSession() override {
    for (uint32_t i = 0; i < 100; ++i) {
      EXPECT_EQ(send(friend_, there_, std::to_string(i)), 0);
      EXPECT_EQ(receive(own_), std::to_string(i));
    }
    EXPECT_EQ(friend_.port->stats().bad, 0u);
    foe_.reset();
    const Member good = member(port(3), 0);
    int rc = -ECONNRESET;
    while (rc == -ECONNRESET) {
      rc = send(good, route(good, 1, 0), "good");
    }
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(receive(own_), "good");
  }
  /// Waits until the foe's card has found ours: from now on what it sends arrives within a few
  /// turns.
  void SetUp() override {
    ASSERT_TRUE(work_until([&] { return foe_->send(1, std::vector<uint8_t>(8)); }));
    ASSERT_TRUE(work_until([&] { return own_.port->stats().bad == 1; }));
  }
  void foe_sends(const std::vector<uint8_t>& bytes) {
    ASSERT_TRUE(work_until([&] { return foe_->send(1, bytes); }));
    ASSERT_TRUE(work_until([&] {
      static_cast<void>(foe_->receive());
      return foe_->outstanding() == 0;
    }));
    turns(2);
  }
  Link& link() { return *own_.port->link(3); }
  /// Begins the session that the foe has asked for.
  void begin() {
    foe_sends(Wire::session(Kind::kHello, 0, 77, 0, 5));
    ASSERT_TRUE(work_until([&] { return link().keys.remote == 77; }));
    foe_sends(Wire::session(Kind::kWelcome, 0, 77, link().keys.local, 5));
    ASSERT_TRUE(work_until([&] { return link().state == LinkState::kUp; }));
  }
  void foe_says(Kind kind) {
    foe_sends(Wire::message(link().keys.local, link().next_in(), 0, 0, 9, kind));
  }

  Member own_ = member(port(1), 0);
  Member friend_ = member(port(2), 0);
  Route there_ = route(friend_, 1, 0);
  std::unique_ptr<Raw> foe_ = std::make_unique<Raw>("shm:x,id=3", 0);
};

TEST_F(HostileSession, AFloodOfHellos) {
  for (uint32_t key = 1; key <= 3000; ++key) {
    foe_sends(Wire::session(Kind::kHello, 0, key, 0));
  }
  EXPECT_EQ(link().keys.remote, 3000u);
  EXPECT_EQ(link().state, LinkState::kIdle);  // the foe has not shown that it received our hello
}

// The foe has died, and another process says hello from the same destID. Our old key was not made
// for the new process, so a message with that key is the dead one's and is refused.
TEST_F(HostileSession, AKeyIsForOneOnly) {
  foe_sends(Wire::session(Kind::kHello, 0, 77, 0, 5));
  ASSERT_EQ(link().keys.remote, 77u);
  const uint32_t key = link().keys.local;
  const uint32_t number = link().keys.first_in;
  foe_sends(Wire::session(Kind::kHello, 0, 78, 0, 5));
  ASSERT_EQ(link().keys.remote, 78u);
  EXPECT_NE(link().keys.local, key);
  const uint64_t bad = own_.port->stats().bad;
  foe_sends(Wire::message(key, number, 0, 0, 0, Kind::kOpen));
  EXPECT_EQ(own_.port->stats().bad, bad + 1);
  EXPECT_EQ(link().state, LinkState::kIdle);
  EXPECT_EQ(link().next_in(), link().keys.first_in);
}

// We have said hello. A process that has read our key may be dead before its own hello arrives, so
// messages with our key count only from a peer whose own key we know.
TEST_F(HostileSession, OurKeyIsRefusedFromAPeerThatHasNotSentItsOwn) {
  const Route to_foe = route(own_, 3, 0);
  ASSERT_EQ(try_send(own_, to_foe, "x"), -EAGAIN);
  ASSERT_EQ(link().state, LinkState::kHello);
  const uint64_t bad = own_.port->stats().bad;
  foe_sends(Wire::message(link().keys.local, link().keys.first_in, 0, 0, 0, Kind::kOpen));
  EXPECT_EQ(own_.port->stats().bad, bad + 1);
  EXPECT_EQ(link().state, LinkState::kHello);
  EXPECT_EQ(link().next_in(), link().keys.first_in);
}

// No message is sent before the peer has shown that it knows our key.
TEST_F(HostileSession, AHelloAloneIsNoSession) {
  const Route to_foe = route(own_, 3, 0);
  foe_sends(Wire::session(Kind::kHello, 0, 77, 0, 5));
  ASSERT_EQ(try_send(own_, to_foe, "x"), -EAGAIN);
  turns(50);
  EXPECT_EQ(link().state, LinkState::kHello);
  EXPECT_EQ(link().next_out, HeaderWords::key_and_number(77, 5));
  foe_sends(Wire::session(Kind::kHello, 0, 77, link().keys.local, 5));
  EXPECT_EQ(link().state, LinkState::kUp);
}

TEST_F(HostileSession, AFloodOfResets) {
  begin();
  const uint32_t session = link().session;
  for (uint32_t key = 0; key <= 1000; ++key) {
    foe_sends(Wire::session(Kind::kReset, 0, key == 77 ? 0 : key, 0));
  }
  EXPECT_EQ(link().session, session);
  foe_sends(Wire::session(Kind::kReset, 0, 77, 0));
  EXPECT_EQ(link().session, session + 1);
  EXPECT_EQ(link().state, LinkState::kIdle);
}

TEST_F(HostileSession, AResetWithoutAKeyDuringAHello) {
  const Route to_foe = route(own_, 3, 0);
  ASSERT_EQ(try_send(own_, to_foe, "x"), -EAGAIN);
  ASSERT_EQ(link().state, LinkState::kHello);
  foe_sends(Wire::session(Kind::kReset, 0, 0, 0));
  EXPECT_EQ(link().state, LinkState::kHello);
}

TEST_F(HostileSession, UnknownKeysGetAnAnswerAndNoMemory) {
  const uint64_t bad = own_.port->stats().bad;
  for (uint32_t key = 1; key <= 2000; ++key) {
    foe_sends(Wire::message(key << 12, key, 0, 0, 0, Kind::kData));
  }
  EXPECT_EQ(own_.port->stats().bad - bad, 2000u);
  // A link that is made now gets the next index, so none was made for the unknown keys.
  EXPECT_EQ(own_.port->link(3)->index(), own_.port->link(2)->index() + 1);
}

TEST_F(HostileSession, AnAnswerToNoQuestionEndsTheSession) {
  uint64_t cut_off = 0;
  for (const Kind kind : {Kind::kOpened, Kind::kCredit, Kind::kRefused}) {
    begin();
    foe_says(kind);
    EXPECT_EQ(own_.port->stats().cut_off, ++cut_off) << static_cast<uint32_t>(kind);
    EXPECT_EQ(link().state, LinkState::kIdle);
    EXPECT_EQ(link().out[0].available(), 0);
  }
}

TEST_F(HostileSession, AnAnswerToAnotherQuestion) {
  const Route to_foe = route(own_, 3, 0);
  ASSERT_EQ(try_send(own_, to_foe, "x"), -EAGAIN);
  const uint64_t bad = own_.port->stats().bad;
  foe_sends(Wire::session(Kind::kWelcome, 0, 88, link().keys.local + 0x10000));
  foe_sends(Wire::session(Kind::kWelcome, 0, 0, link().keys.local));
  EXPECT_EQ(link().state, LinkState::kHello);
  EXPECT_EQ(own_.port->stats().bad, bad + 2);
  foe_sends(Wire::session(Kind::kWelcome, 0, 88, link().keys.local, 6));
  EXPECT_EQ(link().state, LinkState::kUp);
  const uint64_t next_out = link().next_out;
  foe_sends(Wire::session(Kind::kWelcome, 0, 99, link().keys.local, 7));
  EXPECT_EQ(link().keys.remote, 88u);
  EXPECT_EQ(link().next_out, next_out);
}

TEST_F(HostileSession, AHelloAgainChangesNothing) {
  begin();
  const uint32_t session = link().session;
  const uint32_t key = link().keys.local;
  foe_says(Kind::kOpen);
  const uint64_t next_out = link().next_out;
  foe_sends(Wire::session(Kind::kHello, 0, 77, 0, 5));
  EXPECT_EQ(link().session, session);
  EXPECT_EQ(link().keys.local, key);
  EXPECT_EQ(link().next_out, next_out);
}

TEST_F(HostileSession, CreditAboveTheMaximumEndsTheSession) {
  begin();
  const Route to_foe = route(own_, 3, 0);
  ASSERT_EQ(try_send(own_, to_foe, "x"), -EAGAIN);
  turns(50);
  foe_sends(Wire::message(link().keys.local, link().next_in(), 0, 0, 0x4001, Kind::kOpened));
  EXPECT_EQ(own_.port->stats().cut_off, 1u);
  EXPECT_EQ(link().out[0].available(), 0);
}

/// The foe gives credit for kWindowMax messages and has no buffers for them: its card answers
/// RETRY.
class FalseCredit : public HostileSession {
 protected:
  void goes_on(const std::string& to_foe) {
    begin();
    const Route there = route(own_, 3, 0);
    const Route back = route(own_, 2, 0);
    ASSERT_EQ(try_send(own_, there, to_foe), -EAGAIN);
    turns(50);
    foe_sends(Wire::message(link().keys.local, link().next_in(), 0, 0, kWindowMax, Kind::kOpened));
    ASSERT_EQ(link().out[0].available(), kWindowMax);
    uint32_t sent = 0;
    for (uint32_t idle = 0; idle < 1000; ++idle) {
      for (; try_send(own_, there, to_foe) == 0; idle = 0) {
        ASSERT_LT(++sent, 1000u);  // far below the 16384 messages that the foe has promised to take
      }
      foe_->reap();
    }
    EXPECT_LE(own_.port->endpoint().tx().outstanding(), 300u);
    for (uint32_t i = 0; i < 600; ++i) {  // more than the ring has entries
      sent += try_send(own_, there, to_foe) == 0 ? 1 : 0;
      ASSERT_EQ(send(friend_, there_, "goes on"), 0);
      ASSERT_EQ(receive(own_), "goes on");
      int rc = -EAGAIN;
      ASSERT_TRUE(work_until([&] {
        foe_->reap();
        return (rc = try_send(own_, back, "and back")) != -EAGAIN;
      })) << i;
      ASSERT_EQ(rc, 0);
      ASSERT_TRUE(work_until([&] {
        foe_->reap();
        return !friend_.inbox().empty();
      }));
      ASSERT_EQ(friend_.take(), "and back");
    }
    // The foe now reads all messages, and gets those that were held back.
    uint32_t got = 0;
    EXPECT_TRUE(work_until([&] {
      while (!foe_->receive().empty()) {
        ++got;
      }
      return got >= sent && try_send(own_, there, to_foe) == 0;
    })) << got
        << " of " << sent;
  }
};

TEST_F(FalseCredit, OfShortMessages) {
  goes_on("x");
}

TEST_F(FalseCredit, OfLongMessages) {
  goes_on(std::string(4000, 'x'));
}

// A peer leaves a gap in its message numbers, because it held a message back or the card lost it.
// The messages behind the gap are not kept for ever: the session ends after deliver_ms.
TEST_F(Net, AHoleThatIsNeverFilledEndsTheSession) {
  PortConfig config = config_of(1);
  config.deliver_ms = 30;
  const Member own = member(port(config), 0);
  Raw foe("shm:x,id=3", 0);
  ASSERT_TRUE(foe.send(1, Wire::session(Kind::kHello, 0, 77, 0, 5)));
  Link& link = *own.port->link(3);
  ASSERT_TRUE(work_until([&] { return link.keys.remote == 77; }));
  const uint32_t session = link.session;
  ASSERT_TRUE(foe.send(1, Wire::message(link.keys.local, link.next_in(), 0, 0, 0, Kind::kOpen)));
  ASSERT_TRUE(work_until([&] { return link.in[0].open; }));
  ASSERT_TRUE(
      foe.send(1, Wire::message(link.keys.local, link.next_in() + 1, 0, 0, 0, Kind::kData, "b")));
  ASSERT_TRUE(work_until([&] { return own.port->stats().early == 1; }));
  EXPECT_EQ(link.session, session);
  EXPECT_TRUE(work_until([&] { return link.session == session + 1; }));
  EXPECT_EQ(link.error, -EIO);
  EXPECT_EQ(own.port->unshared(), config.buffers - 32);
}

}  // namespace
}  // namespace rio::msg::test
