// Transfers over several cards: the policies, and what happens to a transfer when a rail, a card, a
// user or a session goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/lib/msg/large_fixture.hpp"
#include "tests/unit/lib/msg/rails_fixture.hpp"

namespace rio::msg::test {
namespace {

/// Two ports with the same rails, whose context 0 takes large data.
class StripesTest : public RailsTest {
 protected:
  void start(const std::string& fabrics, const std::string& policy = "") {
    PortConfig config = config_of(1, fabrics);
    config.rail_policy = policy;
    PortConfig other = config_of(2, fabrics);
    other.rail_policy = policy;
    start(config, other);
  }
  /// @param a, b their cards are on the same fabrics.
  void start(const PortConfig& a, const PortConfig& b) {
    a_ = &port(a);
    b_ = &port(b);
    from_ = member(*a_, 0);
    to_ = member(*b_, 0);
    ASSERT_EQ(from_.context->accept_large(), 0);
    ASSERT_EQ(to_.context->accept_large(), 0);
    way_ = route(from_, 2, 0);
    EXPECT_EQ(exchange(from_, way_, to_, 0, 1), numbers(0, 1));
    const uint32_t rails = a_->rails().count();
    ASSERT_TRUE(
        work_until([&] { return path_count(*a_, 2) == rails && path_count(*b_, 1) == rails; }));
  }
  /// A transfer of `bytes` has begun, and the receiver has answered it.
  void begin(uint64_t bytes, uint64_t offset_sent = 0, uint64_t offset_got = 0) {
    sent_ = std::make_unique<Area>(bytes, offset_sent, 0x55);
    got_ = std::make_unique<Area>(bytes, offset_got, 0xAA);
    test::fill(sent_->at(), bytes, static_cast<uint32_t>(bytes + offset_got));
    int rc = -EAGAIN;
    ASSERT_TRUE(work_until([&] {
      return (rc = from_.context->send_large(way_, 7, sent_->at(), bytes, send_)) != -EAGAIN;
    }));
    ASSERT_EQ(rc, 0);
    ASSERT_TRUE(work_until([&] { return !to_.inbox().empty(); }));
    to_.context->receive_large(to_.context->take_request(), got_->at(), bytes, receive_);
    used_ = 0;
  }
  /// Notes which rails have a queue of the transfer.
  void look() {
    for (const Rail* const rail : b_->rails()) {
      used_ |= rail->queues.used() != 0 ? 1u << rail->index : 0;
    }
  }
  void finish() {
    ASSERT_TRUE(work_until([&] {
      look();
      return send_.done && receive_.done;
    }));
    while (from_.context->next_sent() != nullptr || to_.context->next_received() != nullptr) {
    }
  }
  [[nodiscard]] bool is_right() const {
    return std::equal(sent_->at(), sent_->at() + sent_->size(), got_->at()) &&
           got_->guarded(got_->size());
  }
  /// Works until about `part` of the transfer has arrived.
  void work_on(double part) {
    ASSERT_TRUE(work_until([&] {
      look();
      return receive_.done ||
             (receive_.stripes != nullptr && static_cast<double>(receive_.stripes->taken_bytes) >=
                                                 part * static_cast<double>(receive_.rest_bytes));
    }));
    ASSERT_FALSE(receive_.done);
  }

  MessagePort* a_ = nullptr;
  MessagePort* b_ = nullptr;
  Member from_;
  Member to_;
  Route way_;
  std::unique_ptr<Area> sent_;
  std::unique_ptr<Area> got_;
  SendTransfer send_;
  RecvTransfer receive_;
  uint32_t used_ = 0;  // rails of b, one bit each
};

TEST_F(StripesTest, OneTransferUsesAllRails) {
  start("xyz");
  for (const uint64_t offset : {0u, 8u, 1234u, 4095u}) {
    begin((1 << 20) + offset, offset % 8, offset);
    finish();
    EXPECT_EQ(send_.status, 0);
    EXPECT_EQ(receive_.status, 0);
    EXPECT_EQ(receive_.len_bytes, sent_->size());
    EXPECT_EQ(send_.len_bytes, sent_->size());
    EXPECT_EQ(used_, 0b111u) << offset;
    EXPECT_TRUE(is_right()) << offset;
  }
}

TEST_F(StripesTest, AShortTransferUsesOne) {
  start("xy");
  begin(2 * RecvStripes::kBytesLeast - 8);
  finish();
  EXPECT_TRUE(used_ == 1 || used_ == 2) << used_;
  EXPECT_TRUE(is_right());
}

TEST_F(StripesTest, AReceiverWithLessRoomTakesWhatFits) {
  start("xy");
  constexpr uint64_t kBytes = 1 << 20;
  begin(kBytes);
  finish();
  const Area place(kBytes / 2, 0, 0x11);
  int rc = -EAGAIN;
  ASSERT_TRUE(work_until([&] {
    return (rc = from_.context->send_large(way_, 7, sent_->at(), kBytes, send_)) != -EAGAIN;
  }));
  ASSERT_TRUE(work_until([&] { return !to_.inbox().empty(); }));
  to_.context->receive_large(to_.context->take_request(), place.at(), kBytes / 2, receive_);
  finish();
  EXPECT_EQ(receive_.status, -EMSGSIZE);
  EXPECT_EQ(send_.status, 0);
  EXPECT_EQ(send_.len_bytes, kBytes / 2);
  EXPECT_TRUE(std::equal(place.at(), place.at() + kBytes / 2, sent_->at()));
  EXPECT_TRUE(place.guarded(kBytes / 2));
}

// The cards of one rail cut transfers at multiples of 8 bytes, the others at multiples of 256.
TEST_F(StripesTest, CardsWithOtherAlignmentsShareATransfer) {
  for (const auto& [of_a, of_b] : {std::tuple(",quirks=0", ",quirks=0"),
                                   std::tuple(",quirks=0", ""), std::tuple("", ",quirks=0")}) {
    PortConfig a = config_of(1, "xy");
    PortConfig b = config_of(2, "xy");
    a.card += of_a;
    b.card += of_b;
    start(a, b);
    for (const uint64_t offset : {0u, 8u, 1234u}) {
      begin((1 << 20) + offset, offset % 8, offset);
      finish();
      EXPECT_EQ(send_.status, 0);
      EXPECT_EQ(receive_.status, 0);
      EXPECT_EQ(used_, 0b11u) << of_a << " " << of_b << " " << offset;
      EXPECT_TRUE(is_right()) << of_a << " " << of_b << " " << offset;
    }
    EXPECT_EQ(a_->stats().cut_off + b_->stats().cut_off, 0u) << of_a << " " << of_b;
    from_ = {};
    to_ = {};
    ports_.clear();
  }
}

TEST_F(StripesTest, PoliciesDivideAsTheySay) {
  struct Case {
    const char* policy;
    uint32_t rails;
    uint32_t stripes;
  };
  for (const Case& each : {Case{"static", 1, 0}, Case{"dynamic", 4, 4},
                           Case{"unidirectional", 2, 2}, Case{"weighted", 4, 64}}) {
    start("wxyz", each.policy);
    begin(4 << 20);
    uint32_t stripes = 0;
    ASSERT_TRUE(work_until([&] {
      look();
      stripes = receive_.stripes != nullptr ? std::max(stripes, receive_.stripes->begun) : stripes;
      return send_.done && receive_.done;
    }));
    finish();
    EXPECT_EQ(static_cast<uint32_t>(__builtin_popcount(used_)), each.rails) << each.policy;
    EXPECT_EQ(stripes, each.stripes) << each.policy;
    EXPECT_TRUE(is_right()) << each.policy;
    from_ = {};
    to_ = {};
    ports_.clear();
  }
}

TEST_F(StripesTest, TheTwoSidesOfUnidirectionalUseOtherRails) {
  start("wxyz", "unidirectional");
  begin(1 << 20);
  finish();
  const uint32_t there = used_;
  std::swap(a_, b_);
  std::swap(from_, to_);
  way_ = route(from_, 1, 0);
  begin(1 << 20);
  finish();
  EXPECT_EQ(there & used_, 0u);
  EXPECT_EQ(there | used_, 0b1111u);
}

class Cut : public StripesTest, public testing::WithParamInterface<std::tuple<bool, uint32_t>> {};

TEST_P(Cut, OfALinkIsRepairedByTheOthers) {
  const bool is_sender = std::get<0>(GetParam());
  const uint32_t rail = std::get<1>(GetParam());
  start("xyz");
  for (uint32_t round = 0; round < 3; ++round) {
    begin(16 << 20, 0, 512 * round);
    work_on(0.1 + 0.3 * round);
    MessagePort& cut = is_sender ? *a_ : *b_;
    set_link(cut, rail, false);
    finish();
    EXPECT_EQ(send_.status, 0);
    EXPECT_EQ(receive_.status, 0);
    EXPECT_TRUE(is_right()) << round;
    set_link(cut, rail, true);
    ASSERT_TRUE(work_until([&] {
      return a_->known_link(2)->paths[rail]->state.is_up() &&
             b_->known_link(1)->paths[rail]->state.is_up();
    }));
  }
  EXPECT_EQ(a_->sessions_ended() + b_->sessions_ended(), 0u);
  EXPECT_EQ(a_->stats().cut_off + b_->stats().cut_off, 0u);
}

INSTANTIATE_TEST_SUITE_P(Rails, Cut, testing::Combine(testing::Bool(), testing::Values(0, 2)));

class CardOfATransfer : public StripesTest,
                        public testing::WithParamInterface<std::tuple<bool, bool, uint32_t>> {};

TEST_P(CardOfATransfer, IsLostWithoutALoss) {
  const auto [is_sender, vanishes, rail] = GetParam();
  start("xy");
  begin(16 << 20);
  work_on(0.3);
  lose(is_sender ? *a_ : *b_, rail, vanishes);
  finish();
  EXPECT_EQ(send_.status, 0);
  EXPECT_EQ(receive_.status, 0);
  EXPECT_TRUE(is_right());
  begin(1 << 20);
  finish();
  EXPECT_TRUE(is_right());
  EXPECT_EQ(a_->sessions_ended() + b_->sessions_ended(), 0u);
  EXPECT_EQ(a_->stats().cut_off + b_->stats().cut_off, 0u);
}

INSTANTIATE_TEST_SUITE_P(Rails, CardOfATransfer,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Values(0, 1)));

TEST_F(StripesTest, EitherSideMayCancel) {
  start("xy");
  for (uint32_t round = 0; round < 8; ++round) {
    begin(8 << 20);
    work_on(0.1 * round);
    const bool is_sender = round % 2 == 0;
    is_sender ? from_.context->cancel(send_) : to_.context->cancel(receive_);
    finish();
    EXPECT_EQ(send_.status, -ECANCELED) << round;
    EXPECT_EQ(receive_.status, -ECANCELED) << round;
    EXPECT_TRUE(got_->guarded(got_->size()));
  }
  begin(1 << 20);
  finish();
  EXPECT_EQ(receive_.status, 0);
  EXPECT_TRUE(is_right());
  EXPECT_EQ(a_->stats().cut_off + b_->stats().cut_off, 0u);
}

TEST_F(StripesTest, TheEndOfTheSessionEndsThem) {
  start("xy");
  begin(16 << 20);
  work_on(0.2);
  from_ = {};
  const bool had_ended = send_.done;
  close(*a_);
  EXPECT_FALSE(had_ended);
  ASSERT_TRUE(work_until([&] { return receive_.done; }));
  EXPECT_LT(receive_.status, 0);
}

TEST_F(StripesTest, ManyTransfersShareTheRails) {
  start("xy");
  constexpr uint64_t kBytes = 1 << 20;
  constexpr uint32_t kCount = 32;
  std::vector<std::vector<uint8_t>> sent(kCount);
  std::vector<std::vector<uint8_t>> got(kCount, std::vector<uint8_t>(kBytes));
  std::vector<SendTransfer> sends(kCount);
  std::vector<RecvTransfer> receives(kCount);
  uint32_t begun = 0;
  uint32_t taken = 0;
  uint32_t done = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    sent[i].resize(kBytes);
    test::fill(sent[i].data(), kBytes, i);
  }
  ASSERT_TRUE(work_until([&] {
    if (begun < kCount &&
        from_.context->send_large(way_, begun, sent[begun].data(), kBytes, sends[begun]) == 0) {
      ++begun;
    }
    for (; !to_.inbox().empty(); ++taken) {
      to_.context->receive_large(to_.context->take_request(), got[taken].data(), kBytes,
                                 receives[taken]);
    }
    while (from_.context->next_sent() != nullptr || to_.context->next_received() != nullptr) {
      ++done;
    }
    look();
    return done >= 2 * kCount || (begun == kCount && taken == kCount &&
                                  std::all_of(receives.begin(), receives.end(),
                                              [](const RecvTransfer& each) { return each.done; }));
  }));
  EXPECT_EQ(used_, 0b11u);
  for (uint32_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(receives[i].status, 0) << i;
    EXPECT_TRUE(sent[i] == got[i]) << i;
  }
}

TEST_F(StripesTest, AnUnknownPolicyIsRefused) {
  PortConfig config = config_of(1, "xy");
  config.rail_policy = "fastest";
  std::unique_ptr<MessagePort> none;
  testing::internal::CaptureStderr();
  EXPECT_EQ(MessagePort::open(config, &none), -EINVAL);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("'fastest' is no policy; use weighted"),
            std::string::npos);
}

}  // namespace
}  // namespace rio::msg::test
