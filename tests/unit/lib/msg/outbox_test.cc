// The transmit ring of a rail: space, credit, and reports of messages that were not delivered.
#include "lib/msg/outbox.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "fpga/model/card.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/unit/lib/msg/objects.hpp"

namespace rio::msg::test {
namespace {

class OutboxTest : public testing::Test, public Outbox::Events {
 public:
  void on_failed(const pmd::TxDone& done) override { failed_.push_back(done); }
  void on_large_done(const pmd::TxDone&) override { ++large_; }
  void on_half_full() override { ++half_full_; }

 protected:
  OutboxTest() {
    EXPECT_EQ(outbox_.start(), 0);
    outbox_.use(path_);
    link_.state = LinkState::kUp;
    link_.out[3] = SendAccount(4);
  }
  void give_buffers() {
    EXPECT_EQ(buffers_.create(*card_.endpoint, 64), 0);
    EXPECT_EQ(buffer_ring_.start(), 0);
  }
  void send(const std::string& text) {
    ASSERT_TRUE(outbox_.may_send(route_));
    uint8_t* const at = outbox_.begin_message(route_, static_cast<uint32_t>(text.size()));
    std::ranges::copy(text, at + kHeaderBytes);
    outbox_.post(link_, at, kHeaderBytes + static_cast<uint32_t>(text.size()));
  }
  /// Posts as much large data as there may be, which the card has no queue for.
  void post_large() {
    pmd::DmaMemory memory;
    ASSERT_EQ(alloc_area(*card_.endpoint, 1, &memory), 0);
    const pmd::TxMessage message = {.iova = memory.iova,
                                    .cookie = Outbox::kLargeCookie,
                                    .dest_id = link_.dest_id(),
                                    .length_bytes = 4096,
                                    .mbox = 1,
                                    .flags = 0};
    const std::vector<pmd::TxMessage> messages(SendSlots::kCount, message);
    const uint32_t posted = outbox_.ring().burst(messages.data(), SendSlots::kCount);
    outbox_.count_large(static_cast<int32_t>(posted));
    ASSERT_GE(outbox_.ring().outstanding(), Outbox::kOutMax);
  }
  [[nodiscard]] bool all_completed() {
    return until([&] {
      outbox_.reap();
      return outbox_.ring().outstanding() == 0;
    });
  }

  LoopCard card_;
  Buffers buffers_;
  BufferRing buffer_ring_{*card_.endpoint, buffers_};
  Outbox outbox_{*card_.endpoint, *this};
  Objects port_;  // whose rail the path names
  Link link_{card_.endpoint->dest_id(), 0};
  Path path_{port_.rails.first(), link_, card_.endpoint->dest_id(), 1'000'000};
  Route route_ = Outbox::route(link_, 3, 5, Kind::kData);
  std::vector<pmd::TxDone> failed_;
  uint32_t large_ = 0;
  uint32_t half_full_ = 0;
};

TEST_F(OutboxTest, AMessageGoesWithTheNextNumberAndTakesACredit) {
  give_buffers();
  link_.next_out = HeaderWords::key_and_number(9, 100);
  send("hello");
  EXPECT_EQ(link_.out[3].available(), 3);
  EXPECT_EQ(link_.next_out, HeaderWords::key_and_number(9, 101));
  EXPECT_EQ(outbox_.copied(), 5u);
  EXPECT_EQ(outbox_.out_to(link_.dest_id()), outbox_.ring().outstanding());
  const HeaderWords header = load_header(outbox_.ring().slot_va(outbox_.ring().next_index() - 1));
  EXPECT_EQ(header.key_number, HeaderWords::key_and_number(9, 100));
  EXPECT_EQ(header.to(), 3u);
  EXPECT_EQ(header.from(), 5u);
  EXPECT_EQ(header.padding(), 3u);
  EXPECT_TRUE(all_completed());
  EXPECT_TRUE(failed_.empty());
}

TEST_F(OutboxTest, AShortPartTakesTheMailboxOfFullParts) {
  give_buffers();
  link_.next_out = HeaderWords::key_and_number(9, 100);
  send("alone");
  uint8_t* const at = outbox_.begin_message(route_, 4);
  const std::array<char, 4> tail = {'t', 'a', 'i', 'l'};
  std::memcpy(at + kHeaderBytes, tail.data(), tail.size());
  outbox_.post_part(link_, at, kHeaderBytes + 4);
  EXPECT_EQ(link_.next_out, HeaderWords::key_and_number(9, 102));
  std::vector<pmd::RxMessage> arrived;
  ASSERT_TRUE(until([&] {
    pmd::RxMessage message{};
    if (card_.endpoint->shared().burst(&message, 1) == 1) {
      arrived.push_back(message);
    }
    return arrived.size() == 2;
  }));
  const auto is_part = [](const pmd::RxMessage& message) {
    return load_header(reinterpret_cast<const uint8_t*>(message.cookie)).number() == 101;
  };
  for (const pmd::RxMessage& message : arrived) {
    EXPECT_EQ(message.mbox == 0, is_part(message));
  }
  EXPECT_TRUE(all_completed());
}

TEST_F(OutboxTest, NothingIsSentWithoutCreditOrBeforeAnEndIsReported) {
  link_.routes.untold = 1ull << 5;
  EXPECT_FALSE(outbox_.may_send(route_)) << "context 5 must be told of a session's end first";
  link_.routes.untold = 1ull << 6;
  EXPECT_TRUE(outbox_.may_send(route_)) << "context 6 has nothing to be told";
  link_.out[3] = {};
  EXPECT_FALSE(outbox_.may_send(route_));
  EXPECT_FALSE(outbox_.send_one(route_, 0, [](uint8_t*) {}));
}

TEST_F(OutboxTest, AnUndeliveredMessageIsReportedAndStillInItsSlot) {
  send("refused");  // the card has no buffer for it
  EXPECT_TRUE(all_completed());
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].status, pmd::Status::kRetryExpired);
  const auto entry = static_cast<uint32_t>(failed_[0].cookie);
  EXPECT_EQ(outbox_.ring().slot_dest_id(entry), link_.dest_id());
  EXPECT_EQ(std::memcmp(outbox_.ring().slot_va(entry) + kHeaderBytes, "refused", 7), 0);
}

TEST_F(OutboxTest, ControlMessagesNeedASession) {
  give_buffers();
  EXPECT_TRUE(outbox_.say(link_, Kind::kAlive, 0, 0, 0));
  path_.rest.on = true;
  EXPECT_FALSE(outbox_.say(link_, Kind::kAlive, 0, 0, 0)) << "the peer rests";
  path_.rest.on = false;
  link_.state = LinkState::kHello;
  EXPECT_FALSE(outbox_.say(link_, Kind::kAlive, 0, 0, 0));
  EXPECT_TRUE(all_completed());
}

TEST_F(OutboxTest, NothingIsPostedWhileTheRingIsStopped) {
  give_buffers();
  send("before");
  outbox_.begin_stop();
  EXPECT_TRUE(outbox_.stopped());
  EXPECT_FALSE(outbox_.take_room());
  EXPECT_FALSE(outbox_.may_send(route_));
  ASSERT_TRUE(until([&] {
    outbox_.reap_each();  // lets the emulated card work, too
    return outbox_.ring().stopped() == 1 && outbox_.ring().outstanding() == 0;
  }));
  ASSERT_EQ(outbox_.restart(), 0);
  EXPECT_TRUE(outbox_.take_room());
  send("after");
  EXPECT_TRUE(all_completed());
}

TEST_F(OutboxTest, ARequestNeedsASlotAndLeavesACreditForAnswers) {
  give_buffers();
  link_.theirs.opened = 1ull << 3;
  EXPECT_FALSE(outbox_.may_request(route_)) << "no record";
  link_.large.records_out[3] = SendAccount(kRecordWindow);
  uint32_t sent = 0;
  RequestBody body{};
  while (outbox_.may_request(route_)) {
    outbox_.post_request(route_, body);
    ++sent;
  }
  EXPECT_EQ(sent, kControlCredits - 1u);
  EXPECT_TRUE(all_completed());
}

/// A peer that takes large data slowly gets requests all the same.
TEST_F(OutboxTest, LargeDataLeavesThePeerItsShareOfTheRing) {
  link_.theirs.opened = 1ull << 3;
  link_.large.records_out[3] = SendAccount(kRecordWindow);
  post_large();
  EXPECT_TRUE(outbox_.may_request(route_));
  EXPECT_EQ(half_full_, 0u);
  EXPECT_EQ(outbox_.messages_to(link_.dest_id()), 0u);
  EXPECT_GE(outbox_.out_to(link_.dest_id()), Outbox::kOutMax);
}

/// Large data and messages to one peer together leave other peers room.
TEST_F(OutboxTest, MessagesBesideLargeDataHaveASmallerShare) {
  pmd::Bus& bus = card_.endpoint->card().bus();
  dynamic_cast<pmd::EmuBus&>(bus).card()->hold_ring(0, static_cast<uint32_t>(regs::Ring::kTx),
                                                    true);
  link_.out[3] = SendAccount(1000);
  post_large();
  uint32_t sent = 0;
  for (; sent < Outbox::kOutMax && half_full_ == 0; ++sent) {
    send("to a peer that takes nothing");
  }
  EXPECT_GT(half_full_, 0u);
  EXPECT_LE(outbox_.messages_to(link_.dest_id()), Outbox::kBudget + 1);
}

}  // namespace
}  // namespace rio::msg::test
