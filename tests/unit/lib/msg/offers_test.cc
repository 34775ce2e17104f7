// Offers between two ports: accepted, refused, revoked, parked; and peers that send wrong ones.
#include <gtest/gtest.h>

#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint64_t kBits = 77;
constexpr uint64_t kBytes = 100'000;

class Offers : public testing::Test {
 protected:
  Offers() : to_(kBytes + 8, 40, 0x22), from_(kBytes, 64, 0x11) {
    fill(from_.at(), kBytes, 1);
    // From here on the receiver knows the sender's context.
    EXPECT_TRUE(say("hello"));
    EXPECT_TRUE(work(both(), [&] { return !sink_.context->inbox().empty(); }));
    sink_.context->drop_oldest();
    EXPECT_TRUE(say_back());
  }

  std::vector<Node*> both() { return {&source_, &sink_}; }
  bool say(const char* text) {
    const Route route = source_.to(sink_);
    return work(both(), [&] { return source_.port->send(route, text, 5) == 0; });
  }
  bool say_back() {
    const Route route = sink_.to(source_);
    return work(both(), [&] { return sink_.port->send(route, "x", 1) == 0; }) &&
           work(both(), [&] { return !source_.context->inbox().empty(); });
  }
  /// Makes some turns, so that both sides read what the other has sent.
  void settle() {
    for (int i = 0; i < 2000; ++i) {
      source_.port->progress();
      sink_.port->progress();
    }
  }
  [[nodiscard]] int offer(uint64_t capacity = kBytes) {
    return sink_.context->offer_large(sink_.to(source_), kBits, 0, to_.at(), capacity);
  }
  void send_large(uint64_t bits = kBits) { ASSERT_EQ(send(source_, sink_, from_, sent_, bits), 0); }
  void arrives() {
    ASSERT_TRUE(work(both(), [&] { return sent_.done && received_.done; }))
        << sent_.done << received_.done;
    EXPECT_EQ(sent_.status, 0);
    EXPECT_EQ(received_.status, 0);
    EXPECT_EQ(received_.len_bytes, kBytes);
    EXPECT_EQ(std::memcmp(into_, from_.at(), kBytes), 0);
    EXPECT_EQ(source_.port->stats().cut_off + sink_.port->stats().cut_off, 0u);
  }
  void receive(void* buffer, uint64_t capacity = kBytes) {
    ASSERT_TRUE(work(both(), [&] { return sink_.has_request(); }));
    into_ = static_cast<uint8_t*>(buffer);
    sink_.context->receive_large(sink_.context->take_request(), buffer, capacity, received_);
  }

  Node source_{"emu:Offers", 5};
  Node sink_{"emu:Offers", 6};
  Area to_;
  Area from_;
  Area other_{kBytes, 0, 0x33};
  SendTransfer sent_;
  RecvTransfer received_;
  uint8_t* into_ = nullptr;
};

TEST_F(Offers, IsAccepted) {
  ASSERT_EQ(offer(), 0);
  settle();
  send_large();
  EXPECT_EQ(sent_.grant.state(), SendGrant::State::kSending)
      << "the sender need not send a request";
  receive(to_.at());
  arrives();
  EXPECT_EQ(sent_.grant.attempt(), 0);
  EXPECT_TRUE(to_.guarded(kBytes));
}

/// Repeated offers: their numbers go on.
TEST_F(Offers, AgainAndAgain) {
  for (uint32_t i = 0; i < 20; ++i) {
    fill(from_.at(), kBytes, i);
    ASSERT_EQ(offer(), 0) << i;
    settle();
    send_large();
    ASSERT_EQ(sent_.grant.state(), SendGrant::State::kSending) << i;
    receive(to_.at());
    arrives();
  }
}

/// A send is done only when the receiver has said that it received the message.
TEST_F(Offers, NothingIsDoneBeforeItIsReceived) {
  ASSERT_EQ(offer(), 0);
  settle();
  send_large();
  settle();
  EXPECT_FALSE(sent_.done);
  EXPECT_TRUE(to_.guarded(0)) << "nothing lands before it is received";
  receive(to_.at());
  arrives();
}

TEST_F(Offers, ASmallMessageRefuses) {
  ASSERT_EQ(offer(), 0);
  settle();
  ASSERT_TRUE(say("small"));
  settle();
  EXPECT_EQ(offer(), -EAGAIN) << "one was refused: the next is not made at once";
  sink_.context->drop_oldest();
  ASSERT_EQ(offer(), 0);
  settle();
  send_large();
  EXPECT_EQ(sent_.grant.state(), SendGrant::State::kSending);
  receive(to_.at());
  arrives();
}

TEST_F(Offers, AMessageThatDoesNotFitIsRequested) {
  ASSERT_EQ(offer(kBytes - 1), 0);
  settle();
  send_large();
  EXPECT_EQ(sent_.grant.state(), SendGrant::State::kRequested);
  receive(to_.at());
  arrives();
}

TEST_F(Offers, AMessageThatDoesNotMatchIsRequested) {
  ASSERT_EQ(offer(), 0);
  settle();
  send_large(kBits + 1);
  EXPECT_EQ(sent_.grant.state(), SendGrant::State::kRequested);
  receive(other_.at());
  arrives();
  EXPECT_TRUE(to_.guarded(0));
}

/// The message is sent before the offer arrives.
TEST_F(Offers, ComesTooLate) {
  const Route route = source_.to(sink_);
  ASSERT_EQ(source_.context->send_large(route, kBits, from_.at(), kBytes, sent_), 0);
  ASSERT_EQ(offer(), 0);
  EXPECT_EQ(sent_.grant.state(), SendGrant::State::kRequested);
  receive(to_.at());
  arrives();
}

TEST_F(Offers, IsRevoked) {
  ASSERT_EQ(offer(), 0);
  settle();
  EXPECT_EQ(offer(), -EAGAIN) << "one is open";
  sink_.context->revoke_offer(sink_.to(source_));
  settle();
  send_large();
  EXPECT_EQ(sent_.grant.state(), SendGrant::State::kRequested);
  receive(to_.at());
  arrives();
  ASSERT_EQ(offer(), 0) << "the place of the ended offer is free";
}

/// REVOKE and ACCEPT cross.
TEST_F(Offers, IsRevokedTooLate) {
  ASSERT_EQ(offer(), 0);
  settle();
  sink_.context->revoke_offer(sink_.to(source_));
  send_large();
  receive(to_.at());
  arrives();
}

/// The receive was cancelled, so the accepted message is parked, and then handled like a request.
TEST_F(Offers, IsParkedWithoutAReceive) {
  ASSERT_EQ(offer(), 0);
  settle();
  send_large();
  ASSERT_TRUE(work(both(), [&] { return sink_.has_request(); }));
  msg::Request* const request = sink_.context->take_request();
  sink_.context->keep_large(request);
  settle();
  EXPECT_FALSE(sent_.done);
  EXPECT_TRUE(to_.guarded(0));
  into_ = other_.at();
  sink_.context->receive_large(request, other_.at(), kBytes, received_);
  arrives();
  EXPECT_EQ(sent_.grant.attempt(), 1);
  EXPECT_TRUE(to_.guarded(0));
}

/// Another receive, into smaller memory, takes the message.
TEST_F(Offers, IsParkedWhereItLandsElsewhere) {
  ASSERT_EQ(offer(), 0);
  settle();
  send_large();
  receive(other_.at(), kBytes / 2);
  ASSERT_TRUE(work(both(), [&] { return sent_.done && received_.done; }));
  EXPECT_EQ(sent_.status, 0);
  EXPECT_EQ(received_.status, -EMSGSIZE);
  EXPECT_EQ(std::memcmp(other_.at(), from_.at(), kBytes / 2), 0);
  EXPECT_TRUE(other_.guarded(kBytes / 2));
  EXPECT_TRUE(to_.guarded(0));
}

TEST_F(Offers, IsCancelledBothWays) {
  for (const bool by_sender : {true, false}) {
    ASSERT_EQ(offer(), 0);
    settle();
    send_large();
    receive(to_.at());
    if (by_sender) {
      source_.context->cancel(sent_);
    } else {
      sink_.context->cancel(received_);
    }
    ASSERT_TRUE(work(both(), [&] { return sent_.done && received_.done; }));
    // All bytes may have arrived before the cancellation.
    EXPECT_TRUE(sent_.status == 0 || sent_.status == -ECANCELED) << sent_.status;
    EXPECT_TRUE(received_.status == 0 || received_.status == -ECANCELED) << received_.status;
  }
  ASSERT_EQ(offer(), 0);
  settle();
  send_large();
  receive(to_.at());
  arrives();
}

TEST_F(Offers, IsAcceptedAndThenRefused) {
  ASSERT_EQ(offer(), 0);
  settle();
  send_large();
  ASSERT_TRUE(work(both(), [&] { return sink_.has_request(); }));
  sink_.context->refuse_large(sink_.context->take_request());
  ASSERT_TRUE(work(both(), [&] { return sent_.done; }));
  EXPECT_EQ(sent_.status, -ECONNREFUSED);
  EXPECT_TRUE(to_.guarded(0));
  settle();
  ASSERT_EQ(offer(), 0) << "the place of the ended offer is free";
}

}  // namespace
}  // namespace rio::msg::test
