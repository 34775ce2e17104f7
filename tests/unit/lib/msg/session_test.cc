// Sessions: how they begin and end, and which contexts are told.
#include <poll.h>

#include "lib/msg/waiting.hpp"
#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {
namespace {

class Session : public Net {
 protected:
  /// A peer to which both contexts of one port have sent, and which has restarted since.
  Member reborn(const Member& x, const Member& y) {
    {
      const Member b = member(port(2), 0);
      EXPECT_EQ(send(x, route(x, 2, 0), "x"), 0);
      EXPECT_EQ(send(y, route(y, 2, 0), "y"), 0);
      EXPECT_EQ(receive(b), "x");
      EXPECT_EQ(receive(b), "y");
    }
    ports_.pop_back();
    Member b = member(port(2), 0);
    EXPECT_TRUE(work_until([&] {  // the hello of the restarted peer ends the old session
      static_cast<void>(try_send(b, route(b, 1, 0), "z"));
      return !x.inbox().empty();
    }));
    return b;
  }
};

TEST_F(Session, BothSayHelloAtOnce) {
  for (uint32_t round = 0; round < 50; ++round) {
    {
      const Member a = member(port(1), 0);
      const Member b = member(port(2), 0);
      const Route there = route(a, 2, 0);
      const Route back = route(b, 1, 0);
      EXPECT_EQ(try_send(a, there, "x"), -EAGAIN);
      EXPECT_EQ(try_send(b, back, "x"), -EAGAIN);
      ASSERT_EQ(send(a, there, "to b"), 0);
      ASSERT_EQ(send(b, back, "to a"), 0);
      EXPECT_EQ(receive(a), "to a");
      EXPECT_EQ(receive(b), "to b");
      EXPECT_EQ(a.port->stats().bad + b.port->stats().bad, 0u);
    }
    ports_.clear();
  }
}

TEST_F(Session, APeerThatComesLaterIsReached) {
  const Member a = member(port(1), 0);
  const Route there = route(a, 2, 0);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(try_send(a, there, "x"), -EAGAIN);
    turn();
  }
  const Member b = member(port(2), 0);
  ASSERT_EQ(send(a, there, "at last"), 0);
  EXPECT_EQ(receive(b), "at last");
}

TEST_F(Session, APeerThatNeverComesIsUnreachable) {
  PortConfig config = config_of(1);
  config.connect_ms = 50;
  MessagePort& one = port(config);
  const Member a = member(one, 0);
  const Member silent = member(one, 1);
  const Route there = route(a, 2, 0);
  const Route unused = route(silent, 2, 0);
  EXPECT_EQ(send(a, there, "x"), -EHOSTUNREACH);
  EXPECT_EQ(send(a, there, "x"), -EHOSTUNREACH);  // each further attempt waits for connect_ms again
  const Member b = member(port(2), 0);
  int sent = -EHOSTUNREACH;
  for (uint32_t i = 0; i < 100 && sent == -EHOSTUNREACH;
       ++i) {  // the machine may stop us for 50 ms
    sent = send(a, there, "x");
  }
  EXPECT_EQ(sent, 0);
  EXPECT_EQ(receive(b), "x");
  EXPECT_EQ(send(silent, unused, "y"), 0);  // no end to be told of
}

// The hello of a peer is read after the news that the peer has died. It begins no session: that
// session's peer would be dead, and only the delivery timeout would end it.
TEST_F(Session, AHelloOfADeadPeerIsIgnored) {
  PortConfig config = config_of(1);
  config.connect_ms = 50;
  const Member a = member(port(config), 0);
  for (uint32_t round = 0; round < 20; ++round) {
    {
      const Member b = member(port(2), 0);
      const Route back = route(b, 1, 0);
      for (uint32_t i = 0; i < 2000; ++i) {  // only b makes progress
        ASSERT_EQ(try_send(b, back, "x"), -EAGAIN);
      }
    }
    close(*ports_.back());
    std::this_thread::sleep_for(milliseconds(5));  // the news is mostly first then
    const int rc = send(a, route(a, 2, 0), "x");
    ASSERT_TRUE(rc == -EHOSTUNREACH || rc == -ECONNRESET) << rc;
  }
  const Member b = member(port(2), 0);
  int rc = -ECONNRESET;
  while (rc == -ECONNRESET) {
    rc = send(a, route(a, 2, 0), "x");
  }
  EXPECT_EQ(rc, 0);
  EXPECT_EQ(receive(b), "x");
}

TEST_F(Session, MessagesToAContextAreRefusedUntilItOpens) {
  const Member a = member(port(1), 0);
  MessagePort& two = port(2);
  const Route there = route(a, 2, 7);
  EXPECT_EQ(send(a, there, "x"), -ECONNREFUSED);
  EXPECT_EQ(send(a, there, "x"), -ECONNREFUSED);
  const Member b = member(two, 7);
  EXPECT_EQ(send(a, there, "now"), 0);
  EXPECT_EQ(receive(b), "now");
}

TEST_F(Session, AClosedContextRefusesAndAnotherOneMayTakeItsPlace) {
  const Member a = member(port(1), 0);
  MessagePort& two = port(2);
  const Route there = route(a, 2, 7);
  for (uint32_t round = 0; round < 20; ++round) {
    const Member b = member(two, 7);
    ASSERT_EQ(send(a, there, "hello"), 0);
    ASSERT_EQ(receive(b), "hello");
    for (uint32_t i = 0; i < 50 + round; ++i) {
      ASSERT_EQ(send(a, there, "x"), 0);
      ASSERT_EQ(receive(b), "x");
    }
    // Some messages are under way and some are waiting when the context closes.
    for (uint32_t i = 0; i < round % 14; ++i) {
      static_cast<void>(try_send(a, there, "lost"));
    }
    if (round % 2 == 0) {
      turn();
    }
    const_cast<Member&>(b).context.reset();
    int rc = 0;
    ASSERT_TRUE(work_until([&] {
      rc = try_send(a, there, "lost");
      return rc != 0 && rc != -EAGAIN;
    }));
    ASSERT_EQ(rc, -ECONNREFUSED);
    EXPECT_EQ(two.unshared(), 224u);
  }
  EXPECT_EQ(two.stats().cut_off, 0u);
}

// The reopened context sends at once. Its headers must not be taken for credit of the old one.
TEST_F(Session, AReopenedContextThatSendsGivesNoCreditUnasked) {
  const Member a = member(port(1), 0);
  MessagePort& two = port(2);
  const Route there = route(a, 2, 7);
  Member b = member(two, 7);
  for (uint32_t i = 0; i < 40; ++i) {
    ASSERT_EQ(send(a, there, "x"), 0);
    ASSERT_EQ(receive(b), "x");
  }
  ASSERT_EQ(send(b, route(b, 1, 0), "from b"), 0);
  ASSERT_EQ(receive(a), "from b");
  b.context.reset();
  b = member(two, 7);
  const Route back = route(b, 1, 0);
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_EQ(send(b, back, "from the new b"), 0);
    ASSERT_EQ(receive(a), "from the new b");
  }
  uint32_t sent = 0;
  int rc = 0;
  ASSERT_TRUE(work_until([&] {
    rc = try_send(a, there, "not taken");
    sent += rc == 0 ? 1 : 0;
    return rc != 0 && rc != -EAGAIN;
  }));
  EXPECT_EQ(rc, -ECONNREFUSED);
  EXPECT_LE(sent, 14u);
  ASSERT_EQ(send(a, there, "to the new b"), 0);
  ASSERT_EQ(receive(b), "to the new b");
  EXPECT_EQ(a.port->stats().cut_off + two.stats().cut_off, 0u);
}

// A message that arrives after its context has closed still carries credit for the sender's.
TEST_F(Session, CreditThatComesForAClosedContextCounts) {
  MessagePort& one = port(1);
  Member a = member(one, 0);
  const Member stays = member(one, 1);
  const Member b = member(port(2), 0);
  const Route back = route(b, 1, 0);
  ASSERT_EQ(send(b, back, "to a"), 0);
  ASSERT_EQ(receive(a), "to a");
  const Route there = route(stays, 2, 0);
  const uint32_t share = fill(stays, there, 1000);
  ASSERT_EQ(b.inbox().count(), share);
  a.context.reset();
  while (!b.inbox().empty()) {
    b.context->drop_oldest();
  }
  // All credit travels in messages to the closed context, and in no other message.
  ASSERT_EQ(try_send(b, back, "too late"), 0);
  EXPECT_EQ(send(stays, there, "goes on"), 0);
  EXPECT_EQ(receive(b), "goes on");
  EXPECT_NE(one.stats().bad, 0u);
}

// Data may arrive before the answer that allows it. Both carry the same credit, which counts once.
TEST_F(Session, AMessageThatOvertakesTheAnswerGivesItsCreditOnce) {
  const Member a = member(port(1), 0);
  const Member b = member(port(2), 0);
  const Route there = route(a, 2, 0);
  const Route back = route(b, 1, 0);
  uint32_t sent[2] = {};  // fewer than the credit allows; fill() uses the rest
  for (uint32_t i = 0; i < 30; ++i) {
    sent[0] += sent[0] < 10 && try_send(a, there, "a") == 0 ? 1 : 0;
    sent[1] += sent[1] < 10 && try_send(b, back, "b") == 0 ? 1 : 0;
  }
  fill(a, there, 1000);
  fill(b, back, 1000);
  EXPECT_EQ(a.port->stats().cut_off + b.port->stats().cut_off, 0u);
  EXPECT_EQ(b.inbox().count(), 14u);
  EXPECT_EQ(a.inbox().count(), 14u);
}

TEST_F(Session, ARestartedPeerGetsNoOldMessages) {
  const Member a = member(port(1), 0);
  const Route there = route(a, 2, 0);
  uint32_t sent = 0;
  for (uint32_t life = 0; life < 30; ++life) {
    MessagePort& two = port(2);
    {
      const Member b = member(two, 0);
      // Messages sent before the end of the old session is known are lost.
      const uint32_t born = sent;
      ASSERT_TRUE(work_until([&] {
        sent += try_send(a, there, std::to_string(sent)) == 0 ? 1 : 0;
        return !b.inbox().empty();
      })) << life;
      for (auto next = static_cast<uint32_t>(std::stoul(b.text())); next < sent; ++next) {
        ASSERT_GE(next, born);
        ASSERT_EQ(receive(b), std::to_string(next));
      }
      for (uint32_t i = 0; i < life % 14; ++i) {  // under way when the peer dies
        sent += try_send(a, there, std::to_string(sent)) == 0 ? 1 : 0;
      }
      if (life % 3 == 0) {
        turn();
      }
    }
    close(two);
  }
}

/// The port reads its messages and the news of its peers in one call: messages come first.
TEST_F(Session, LastMessagesComeBeforeTheNews) {
  constexpr uint32_t kLast = 40;  // more than one burst
  PortConfig sleeps = config_of(1);
  sleeps.sleeps = true;
  sleeps.share = 2 * kLast;
  sleeps.buffers = 4096;
  MessagePort& one = port(sleeps);
  const Member a = member(one, 0);
  MessagePort& two = port(2);
  Member b = member(two, 0);
  const Route there = route(b, 1, 0);
  ASSERT_EQ(send(b, there, "hello"), 0);
  ASSERT_EQ(receive(a), "hello");
  turns(200);  // both ports know of each other by now
  // From here on a's port makes no progress; only its card works.
  const pmd::PollHook step = one.endpoint().card().bus().poll_hook(0);
  for (uint32_t i = 0; i < kLast; ++i) {
    ASSERT_EQ(try_send(b, there, std::to_string(i)), 0) << i;
  }
  for (int rc = -ETIMEDOUT; rc != 0; rc = two.flush(1)) {
    step();
    ASSERT_EQ(rc, -ETIMEDOUT);
  }
  b.context.reset();
  close(two);
  // Each other ring may still owe one interrupt, of what came before; the event raises one for each
  // request.
  pollfd news{one.endpoint().irq_fd(), POLLIN, 0};
  for (uint32_t ring = 0; ring <= regs::kRingsPerQp; ++ring) {
    ASSERT_EQ(one.endpoint().irq_ack(), 0);
    ASSERT_EQ(one.endpoint().irq_arm(pmd::ring_bit(regs::Ring::kEvent)), 0);
    while (poll(&news, 1, 0) == 0) {
      step();
    }
  }
  ASSERT_TRUE(a.inbox().empty());
  EXPECT_TRUE(Sleeper(one).prepare([] {}));
  ASSERT_EQ(a.inbox().count(), kLast);
  for (uint32_t i = 0; i < kLast; ++i) {
    EXPECT_EQ(a.take(), std::to_string(i));
  }
  EXPECT_EQ(one.sessions_ended(), 1u);
}

/// The news of a death is older than the hello of the process that has the destID now, even if the
/// news is read later.
TEST_F(Session, LateNewsOfADeathDoesNotEndTheNextSession) {
  const Member a = member(port(1), 0);
  for (uint32_t life = 0; life < 100; ++life) {
    MessagePort& two = port(2);
    Member b = member(two, 0);
    ASSERT_EQ(send(b, route(b, 1, 0), "hello"), 0) << life;
    ASSERT_EQ(receive(a), "hello") << life;
    turns(200);  // more than the interval at which the port reads the card's events
    const uint32_t session = a.port->link(2)->session;
    ASSERT_EQ(send(b, route(b, 1, 0), "again"), 0) << life;
    ASSERT_EQ(receive(a), "again") << life;
    ASSERT_EQ(a.port->link(2)->session, session) << life;
    b.context.reset();
    close(two);
  }
}

TEST_F(Session, EachContextThatHasSentIsToldOfTheEnd) {
  MessagePort& one = port(1);
  const Member x = member(one, 0);
  const Member y = member(one, 1);
  const Member never = member(one, 2);
  const Member b = reborn(x, y);
  EXPECT_EQ(try_send(x, route(x, 2, 0), "x"), -ECONNRESET);
  EXPECT_EQ(try_send(y, route(y, 2, 0), "y"), -ECONNRESET);
  EXPECT_EQ(send(x, route(x, 2, 0), "x"), 0);
  EXPECT_EQ(send(y, route(y, 2, 0), "y"), 0);
  EXPECT_EQ(send(never, route(never, 2, 0), "never"), 0);
  EXPECT_EQ(receive(b), "x");
  EXPECT_EQ(receive(b), "y");
  EXPECT_EQ(receive(b), "never");
}

// Another context of the port has already begun a new session. This context is told of the loss all
// the same, before any of its messages is sent.
TEST_F(Session, AContextThatSendsLateIsToldOfTheEndFirst) {
  MessagePort& one = port(1);
  const Member x = member(one, 0);
  const Member y = member(one, 1);
  const Member b = reborn(x, y);
  EXPECT_EQ(try_send(x, route(x, 2, 0), "x"), -ECONNRESET);
  EXPECT_EQ(send(x, route(x, 2, 0), "x again"), 0);
  EXPECT_EQ(receive(b), "x again");
  EXPECT_EQ(try_send(y, route(y, 2, 0), "y"), -ECONNRESET);
  EXPECT_EQ(send(y, route(y, 2, 0), "y again"), 0);
  EXPECT_EQ(receive(b), "y again");
}

/// The error of a send whose peer has died without a goodbye.
class DeadPeer : public Session {
 protected:
  int hears(const std::string& card, const std::string& peers_card) {
    PortConfig config = config_of(1);
    config.card = card;
    config.dest_id = card.compare(0, 3, "emu") == 0 ? 1 : 0;
    config.connect_ms = config.deliver_ms = 500;
    const Member a = member(port(config), 0);
    const Route there = route(a, 2, 0);
    {
      config.card = peers_card;
      config.dest_id *= 2;
      const Member b = member(port(config), 0);
      EXPECT_EQ(send(a, there, "x"), 0);
      EXPECT_EQ(receive(b), "x");
    }
    ports_.pop_back();
    int rc = 0;
    EXPECT_TRUE(work_until([&] {
      rc = try_send(a, there, "into the void");
      return rc != 0 && rc != -EAGAIN;
    }));
    EXPECT_EQ(send(a, there, "x"), -EHOSTUNREACH);
    return rc;
  }
};

TEST_F(DeadPeer, IsGivenUpAfterATimeout) {
  EXPECT_EQ(hears("emu:dead", "emu:dead"), -ETIMEDOUT);
}

TEST_F(DeadPeer, IsKnownFromTheFabric) {
  EXPECT_EQ(hears("shm:x,id=1", "shm:x,id=2"), -ECONNRESET);
}

// The wire reports no death, and no message is outstanding that could fail: the sender waits for
// credit that its restarted peer does not know of.
TEST_F(Session, ASenderThatWaitsForCreditIsToldThatItsPeerRestarted) {
  PortConfig config = config_of(1);
  config.card = "emu:credit";
  config.dest_id = 1;
  const Member a = member(port(config), 0);
  const Route there = route(a, 2, 0);
  config.dest_id = 2;
  {
    const Member b = member(port(config), 0);
    ASSERT_LT(fill(a, there, 1000), 1000u);
    ASSERT_TRUE(work_until([&] { return a.port->flush(0) == 0; }));
  }
  ports_.pop_back();
  const Member b = member(port(config), 0);
  int rc = -EAGAIN;
  EXPECT_TRUE(work_until([&] { return (rc = try_send(a, there, "more")) != -EAGAIN; }));
  EXPECT_EQ(rc, -ECONNRESET);
  EXPECT_EQ(send(a, there, "again"), 0);
  EXPECT_EQ(receive(b), "again");
}

TEST_F(Session, ContextsGetUniqueIds) {
  MessagePort& one = port(1);
  std::unique_ptr<MessageContext> none;
  EXPECT_EQ(MessageContext::create(one, kContexts, &none), -EINVAL);
  const Member a = member(one, 5);
  EXPECT_EQ(MessageContext::create(one, 5, &none), -EBUSY);
  EXPECT_EQ(none, nullptr);
  Route out;
  EXPECT_EQ(one.route(2, kContexts, 0, Kind::kData, &out), -EINVAL);
  EXPECT_EQ(one.route(2, 0, kContexts, Kind::kData, &out), -EINVAL);
  EXPECT_EQ(one.route(2, 0, 0, Kind::kOpen, &out), -EINVAL);
}

TEST_F(Session, FlushedMessagesHaveArrived) {
  const Member a = member(port(1), 0);
  const Member b = member(port(2), 0);
  const Route there = route(a, 2, 0);
  ASSERT_EQ(send(a, there, "first"), 0);
  ASSERT_EQ(receive(b), "first");
  ASSERT_EQ(try_send(a, there, "flushed"), 0);
  EXPECT_EQ(a.port->flush(1), -ETIMEDOUT);  // a card that is not polled does not answer
  std::atomic<bool> flushed = false;
  std::thread other([&] {
    while (!flushed) {
      b.port->progress();
    }
  });
  EXPECT_EQ(a.port->flush(10000), 0);
  flushed = true;
  other.join();
  EXPECT_EQ(receive(b), "flushed");
}

}  // namespace
}  // namespace rio::msg::test
