// Transfers that end early: cancelled by either side, refused, or left by a peer that dies.
#include <algorithm>

#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint64_t kBytes = 3'000'000;

class LargeStop : public ::testing::Test {
 protected:
  [[nodiscard]] Request* ask(SendTransfer& sent) {
    EXPECT_EQ(send(a_, b_, from_, sent), 0);
    EXPECT_TRUE(work({&a_, &b_}, [&] { return b_.has_request(); }));
    return b_.context->take_request();
  }
  void turn(uint32_t turns) {
    for (uint32_t i = 0; i < turns; ++i) {
      a_.port->progress();
      b_.port->progress();
    }
  }
  /// Lets both sides work until the condition holds. Transfers that are done may be freed then.
  template <class Until>
  [[nodiscard]] bool done(Until&& until) {
    const bool ended = work({&a_, &b_}, until);
    for (Node* node : {&a_, &b_}) {
      while (node->context->next_sent() != nullptr || node->context->next_received() != nullptr) {
      }
    }
    return ended;
  }
  /// A new transfer arrives, whatever happened before.
  void expect_well() {
    SendTransfer sent;
    RecvTransfer received;
    const Area to(kBytes, 5, 0x33);
    b_.context->receive_large(ask(sent), to.at(), kBytes, received);
    EXPECT_TRUE(done([&] { return sent.done && received.done; }));
    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(received.status, 0);
    EXPECT_EQ(std::memcmp(from_.at(), to.at(), kBytes), 0);
    EXPECT_TRUE(to.guarded(kBytes));
  }

  const std::string wire_ =
      std::string("emu:") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Node a_{wire_, 5};
  Node b_{wire_, 6};
  const Area from_{kBytes, 1, 0x11};
};

TEST_F(LargeStop, ARefusedTransferIsNotSent) {
  fill(from_.at(), kBytes, 1);
  SendTransfer sent;
  b_.context->refuse_large(ask(sent));
  EXPECT_TRUE(done([&] { return sent.done; }));
  EXPECT_EQ(sent.status, -ECONNREFUSED);
  EXPECT_EQ(a_.port->stats().placed, 0u);
  expect_well();
}

TEST_F(LargeStop, AContextThatTakesNoneRefuses) {
  std::unique_ptr<MessageContext> other;
  ASSERT_EQ(MessageContext::create(*b_.port, kContext + 1, &other), 0);
  Route route;
  ASSERT_EQ(a_.port->route(6, kContext + 1, kContext, Kind::kData, &route), 0);
  SendTransfer sent;
  ASSERT_TRUE(work(
      {&a_, &b_}, [&] { return a_.context->send_large(route, 0, from_.at(), kBytes, sent) == 0; }));
  EXPECT_TRUE(done([&] { return sent.done; }));
  EXPECT_EQ(sent.status, -ECONNREFUSED);
  EXPECT_TRUE(other->inbox().empty());
}

TEST_F(LargeStop, ASenderThatCancelsBeforeItIsMatched) {
  SendTransfer sent;
  Request* const request = ask(sent);
  a_.context->cancel(sent);
  EXPECT_TRUE(done([&] { return sent.done; }));
  EXPECT_EQ(sent.status, -ECANCELED);
  turn(100);
  RecvTransfer received;
  const Area to(kBytes, 0, 0x22);
  b_.context->receive_large(request, to.at(), kBytes, received);
  EXPECT_TRUE(done([&] { return received.done; }));
  EXPECT_EQ(received.status, -ECANCELED);
  EXPECT_TRUE(to.guarded(8));
  expect_well();
}

// cancel() meets another state of the transfer after each number of turns.
TEST_F(LargeStop, TheSenderCancelsAtAnyTime) {
  fill(from_.at(), kBytes, 1);
  for (uint32_t turns = 0; turns < 120; turns += 1 + turns / 16) {
    SendTransfer sent;
    RecvTransfer received;
    const Area to(kBytes, 9, 0x22);
    b_.context->receive_large(ask(sent), to.at(), kBytes, received);
    turn(turns);
    a_.context->cancel(sent);
    ASSERT_TRUE(done([&] { return sent.done && received.done; })) << turns;
    ASSERT_EQ(sent.status, received.status) << turns;
    ASSERT_TRUE(sent.status == 0 || sent.status == -ECANCELED);
    ASSERT_TRUE(to.guarded(kBytes));
  }
  expect_well();
}

TEST_F(LargeStop, TheReceiverCancelsAtAnyTime) {
  fill(from_.at(), kBytes, 1);
  uint32_t in_the_middle = 0;
  for (uint32_t turns = 0; turns < 120; turns += 1 + turns / 16) {
    SendTransfer sent;
    RecvTransfer received;
    const Area to(kBytes, 9, 0x22);
    b_.context->receive_large(ask(sent), to.at(), kBytes, received);
    turn(turns);
    b_.context->cancel(received);
    ASSERT_TRUE(done([&] { return received.done; })) << turns;
    ASSERT_TRUE(received.status == 0 || received.status == -ECANCELED);
    in_the_middle += received.status != 0 && !to.guarded(8) ? 1 : 0;
    std::memset(to.at(), 0x22, kBytes);  // it is ours again
    ASSERT_TRUE(done([&] { return sent.done; })) << turns;
    turn(50);
    ASSERT_EQ(sent.status, received.status) << turns;
    ASSERT_TRUE(to.guarded(0)) << "it landed after the end, " << turns;
  }
  EXPECT_GT(in_the_middle, 10u);
  expect_well();
}

TEST_F(LargeStop, BothCancelAtOnce) {
  for (uint32_t turns = 0; turns < 60; ++turns) {
    SendTransfer sent;
    RecvTransfer received;
    const Area to(kBytes, 0, 0x22);
    b_.context->receive_large(ask(sent), to.at(), kBytes, received);
    turn(turns);
    b_.context->cancel(received);
    a_.context->cancel(sent);
    ASSERT_TRUE(done([&] { return sent.done && received.done; })) << turns;
  }
  expect_well();
}

// Messages of a cancelled transfer that the sender has already posted go out after the receiver has
// begun the next one.
TEST(LargeReopen, TheNextTransferGetsNoBytesOfTheCancelledOne) {
  const std::string wire = "emu:LargeReopen,exact=1";
  Node a(wire, 5);
  Node b(wire, 6);
  const Area from(kBytes, 1, 0x11);
  const Area next_from(kBytes, 1, 0x11);
  fill(from.at(), kBytes, 1);
  fill(next_from.at(), kBytes, 2);
  uint32_t in_the_middle = 0;
  for (uint32_t turns = 1; turns < 200; turns += 20) {
    SendTransfer sent;
    SendTransfer next_sent;
    RecvTransfer received;
    RecvTransfer next_received;
    const Area to(kBytes, 1, 0x22);
    const Area next_to(kBytes, 1, 0x22);
    ASSERT_TRUE(begin(a, b, from, sent, to, received));
    ASSERT_EQ(send(a, b, next_from, next_sent), 0);
    ASSERT_TRUE(work({&a, &b}, [&] { return b.has_request(); }));
    for (uint32_t i = 0; i < turns; ++i) {
      a.port->progress();
      b.port->progress();
    }
    in_the_middle += sent.grant.out() != 0 ? 1 : 0;
    b.context->cancel(received);
    b.context->receive_large(b.context->take_request(), next_to.at(), kBytes, next_received);
    EXPECT_TRUE(work({&a, &b}, [&] {
      return sent.done && received.done && next_sent.done && next_received.done;
    }));
    for (Node* node : {&a, &b}) {
      while (node->context->next_sent() != nullptr || node->context->next_received() != nullptr) {
      }
    }
    ASSERT_EQ(next_sent.status, 0) << turns;
    ASSERT_EQ(next_received.status, 0) << turns;
    ASSERT_EQ(std::memcmp(next_from.at(), next_to.at(), kBytes), 0) << turns;
    ASSERT_TRUE(next_to.guarded(kBytes)) << turns;
  }
  EXPECT_GT(in_the_middle, 5u);
}

// One port closes in the middle of a transfer: the other one notices when the session ends.
TEST(LargeDeath, ThePeerGoesInTheMiddle) {
  for (uint32_t turns = 0; turns < 60; turns += 7) {
    for (const bool sender_dies : {false, true}) {
      const std::string wire = "emu:LargeDeath" + std::to_string(turns) + (sender_dies ? "s" : "r");
      auto a = std::make_unique<Node>(wire, 5);
      auto b = std::make_unique<Node>(wire, 6);
      const Area from(kBytes, 0, 0x11);
      const Area to(kBytes, 0, 0x22);
      SendTransfer sent;
      RecvTransfer received;
      ASSERT_TRUE(begin(*a, *b, from, sent, to, received));
      for (uint32_t i = 0; i < turns; ++i) {
        a->port->progress();
        b->port->progress();
      }
      Node& left = sender_dies ? *b : *a;
      Transfer& open = sender_dies ? static_cast<Transfer&>(received) : sent;
      const bool over = open.done;
      (sender_dies ? a : b).reset();
      // A new process has the same destID, and another session.
      Node again(wire, sender_dies ? 5 : 6);
      const Area small(5000, 0, 0x44);
      SendTransfer next;
      Node& other = again;
      ASSERT_EQ(send(other, left, small, next), 0);
      ASSERT_TRUE(work({&other, &left}, [&] { return open.done; })) << turns << sender_dies;
      if (!over) {
        EXPECT_EQ(open.status, -ECONNRESET) << turns;
      }
      ASSERT_TRUE(work({&other, &left}, [&] { return left.has_request(); }));
      RecvTransfer taken;
      const Area place(5000, 0, 0x55);
      left.context->receive_large(left.context->take_request(), place.at(), 5000, taken);
      ASSERT_TRUE(work({&other, &left}, [&] { return taken.done && next.done; }));
      EXPECT_EQ(taken.status, 0);
      EXPECT_EQ(std::memcmp(small.at(), place.at(), 5000), 0);
    }
  }
}

// All mailboxes of the dead peer were in use. Its successor waits until they have rested, and no
// longer, though no other traffic wakes the port.
TEST(LargeDeath, ARestartedPeerIsServedOnceItsMailboxesHaveRested) {
  const std::string wire = "emu:LargeDeathRest";
  auto a = std::make_unique<Node>(wire, 5);
  Node b(wire, 6);
  const Area from(kBytes, 0, 0x11);
  SendTransfer sent[QueueSource::kMailboxes];
  RecvTransfer received[QueueSource::kMailboxes];
  const Area to[QueueSource::kMailboxes] = {
      {kBytes, 0, 0x22}, {kBytes, 0, 0x22}, {kBytes, 0, 0x22}};
  for (uint32_t i = 0; i < QueueSource::kMailboxes; ++i) {
    ASSERT_TRUE(begin(*a, b, from, sent[i], to[i], received[i]));
  }
  ASSERT_FALSE(received[0].done);
  a.reset();
  a = std::make_unique<Node>(wire, 5);
  SendTransfer next;
  RecvTransfer taken;
  const Area place(kBytes, 0, 0x55);
  ASSERT_TRUE(begin(*a, b, from, next, place, taken));
  bool good = false;
  for (uint32_t i = 0; i < 20 && !good; ++i) {
    good = work({a.get(), &b}, [&] { return taken.done && next.done; });
  }
  ASSERT_TRUE(good);
  EXPECT_EQ(taken.status, 0);
  for (const RecvTransfer& each : received) {
    EXPECT_EQ(each.status, -ECONNRESET);
  }
}

}  // namespace
}  // namespace rio::msg::test
