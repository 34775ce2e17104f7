// Messages of any size between contexts, one feature at a time.
#include <algorithm>
#include <array>
#include <cerrno>

#include "tests/unit/lib/tag/long_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint64_t kInParts = 10000;  // sent in parts, with the default border
constexpr uint64_t kLarge = 1'000'000;

class Long : public LongNet {
 protected:
  static PortConfig impatient(uint32_t id) {
    PortConfig config = config_of(id);
    config.connect_ms = 200;  // no peer answers for a port that is gone: do not wait long
    return config;
  }
  /// Begins a send from a that stays under way.
  SendRequest& begin(const Bytes& bytes) {
    SendRequest* sent = nullptr;
    EXPECT_EQ(send(a_, b_.dest_id(), b_.id(), bytes, &sent), 0);
    return *sent;
  }
  /// Begins sends from a, one behind the other. @return those that stay under way.
  std::vector<SendRequest*> begin_all(const std::vector<Bytes>& all) {
    std::vector<SendRequest*> under_way;
    for (const Bytes& bytes : all) {
      SendRequest* sent = nullptr;
      const int rc = send(a_, b_.dest_id(), b_.id(), bytes, &sent);
      EXPECT_GE(rc, 0);
      if (rc == 0) {
        under_way.push_back(sent);
      }
    }
    return under_way;
  }
  /// All messages arrive at b in order, and all sends end well.
  void expect_all(const std::vector<Bytes>& all, const std::vector<SendRequest*>& under_way) {
    for (const Bytes& bytes : all) {
      expect_next(b_, bytes);
    }
    for (SendRequest* const sent : under_way) {
      EXPECT_EQ(ended(a_, *sent), 0);
    }
  }
  /// Waits for the next message that b is shown, which is a long one.
  Unexpected& next_long() {
    EXPECT_TRUE(wait_for(b_));
    Unexpected* const arrival = b_.messages->shown();
    EXPECT_NE(arrival, nullptr);
    return *arrival;
  }
  void expect_well() {
    for (const uint64_t size : {uint64_t{5}, kInParts, kLarge}) {
      const Bytes bytes = pattern(size, size);
      SendRequest* sent = nullptr;
      const int rc = send(a_, b_.dest_id(), b_.id(), bytes, &sent);
      ASSERT_GE(rc, 0);
      expect_next(b_, bytes);
      ASSERT_TRUE(rc == 1 || ended(a_, *sent) == 0);
    }
  }
  [[nodiscard]] uint32_t unshared() const { return b_.port->unshared(); }

  Talker& a_ = talker(port(1), 3);
  Talker& b_ = talker(port(impatient(2)), 5);
};

TEST_F(Long, EachSizeAroundEachBorder) {
  uint64_t number = 0;
  const uint64_t border = a_.port->copied_bytes().always;
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, uint64_t{kPartBytesMax} - 1, uint64_t{kPartBytesMax},
        uint64_t{kPartBytesMax} + 1, uint64_t{tag::kFirstBytesMax} + tag::kMoreBytesMax - 1,
        uint64_t{tag::kFirstBytesMax} + tag::kMoreBytesMax,
        uint64_t{tag::kFirstBytesMax} + tag::kMoreBytesMax + 1, border, border + 1,
        uint64_t{5'000'001}}) {
    const Bytes bytes = pattern(++number, size);
    SendRequest* sent = nullptr;
    const int rc = send(a_, b_.dest_id(), b_.id(), bytes, &sent);
    ASSERT_GE(rc, 0) << size;
    ASSERT_TRUE(wait_for(b_));
    expect_next(b_, bytes);
    ASSERT_TRUE(rc == 1 || ended(a_, *sent) == 0) << size;
    if (size > border) {
      EXPECT_GE(b_.port->stats().placed, size - 2 * 4096) << "it was not moved by a queue";
    }
  }
}

TEST_F(Long, TheOrderOfAllSizesIsOne) {
  std::vector<Bytes> all;
  for (uint64_t i = 0; i < 12; ++i) {
    constexpr std::array<uint64_t, 4> kSizes = {20, kInParts, kLarge, 4080};
    all.push_back(pattern(i, kSizes[i % kSizes.size()]));
  }
  expect_all(all, begin_all(all));
}

TEST_F(Long, SendersWhosePartsComeInterleaved) {
  Talker& c = talker(port(3), 1);
  Talker& d = talker(*c.port, 2);  // of the same card
  const std::array<Talker*, 3> senders = {&a_, &c, &d};
  std::array<Bytes, 3> bytes;
  std::array<SendRequest*, 3> sends{};
  for (uint32_t i = 0; i < 3; ++i) {
    bytes[i] = pattern(i, kInParts + i);
    const int rc = send(*senders[i], b_.dest_id(), b_.id(), bytes[i], &sends[i]);
    ASSERT_GE(rc, 0);
  }
  for (uint32_t n = 0; n < 3; ++n) {
    Unexpected& arrival = next_long();
    const uint64_t which = arrival.length_bytes - kInParts;
    ASSERT_LT(which, 3u);
    EXPECT_EQ(arrival.source, senders[which]->address());
    Bytes got(arrival.length_bytes);
    int status = 1;
    RecvRequest* received = nullptr;
    ASSERT_EQ(b_.receive(arrival, got.data(), got.size(), nullptr, &status, &received), 1);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(got == bytes[which]);
  }
}

TEST_F(Long, AMessageLongerThanTheBufferIsTruncated) {
  for (const uint64_t size : {kInParts, kLarge}) {
    for (const uint64_t capacity :
         {uint64_t{0}, uint64_t{1}, uint64_t{4064}, uint64_t{4065}, uint64_t{9000}, size - 1}) {
      const Bytes bytes = pattern(capacity, size);
      SendRequest* sent = nullptr;
      const int rc = send(a_, b_.dest_id(), b_.id(), bytes, &sent);
      Bytes got;
      ASSERT_EQ(receive(b_, capacity, &got), -EMSGSIZE) << size << " " << capacity;
      EXPECT_TRUE(std::equal(got.begin(), got.end(), bytes.begin())) << size << " " << capacity;
      ASSERT_TRUE(rc == 1 || ended(a_, *sent) == 0) << size << " " << capacity;
    }
  }
  expect_well();
}

TEST_F(Long, ARefusedMessageIsNotMoved) {
  const Bytes bytes = pattern(1, kLarge);
  SendRequest& sent = begin(bytes);
  b_.messages->refuse(next_long());
  EXPECT_EQ(ended(a_, sent), -ECONNREFUSED);
  EXPECT_EQ(b_.port->stats().placed, 0u);
  EXPECT_EQ(send_all(a_, b_, pattern(2, kInParts)), 0);
  b_.messages->refuse(next_long());
  expect_well();
}

TEST_F(Long, NothingLongUnlessItIsWanted) {
  const auto expect_refused = [&](const Bytes& bytes) {
    SendRequest& sent = begin(bytes);
    ASSERT_TRUE(until([&] { return b_.messages->look() || (sent.stage == tag::Stage::kDone); }));
    EXPECT_EQ(ended(a_, sent), -ECONNREFUSED);
  };
  EXPECT_EQ(b_.messages->accept(0), 0);
  expect_refused(pattern(1, kLarge));
  EXPECT_EQ(send_all(a_, b_, pattern(2, kInParts)), 0);
  const Bytes brief = pattern(3, 10);
  EXPECT_EQ(send_all(a_, b_, brief), 0);
  expect_next(b_, brief);
  EXPECT_EQ(b_.messages->accept(kInParts), 0);
  EXPECT_EQ(send_all(a_, b_, pattern(4, kInParts + 1)), 0);
  expect_refused(pattern(5, kLarge));
  const Bytes fits = pattern(6, kInParts);
  EXPECT_EQ(send_all(a_, b_, fits), 0);
  expect_next(b_, fits);
  EXPECT_EQ(b_.messages->accept(kLongest), 0);
  expect_well();
}

// Unexpected data is bounded: parts need credit, and a sender without credit sends a request and
// keeps the bytes.
TEST_F(Long, ASenderWithoutCreditSendsARequest) {
  std::vector<Bytes> all;
  for (uint64_t i = 0; i < 12; ++i) {  // three credits each; the share is 16
    all.push_back(pattern(i, kInParts));
  }
  const std::vector<SendRequest*> sends = begin_all(all);
  ASSERT_TRUE(until([&] {
    return std::any_of(sends.begin(), sends.end(),
                       [](const SendRequest* s) { return s->large != nullptr; });
  }));
  EXPECT_LE(b_.context().inbox().count(), 16u + kRecordWindow);
  expect_all(all, sends);
}

// The receiver holds all long messages that it was shown. This stops their sender, and no other.
TEST_F(Long, AReceiverThatHoldsAllStopsOnlyTheirSender) {
  Talker& c = talker(port(3), 0);
  const Bytes bytes = pattern(1, kLarge);
  std::vector<SendRequest*> sends;
  std::vector<Unexpected*> held;
  for (uint32_t i = 0; i < 2 * kRecordWindow; ++i) {
    sends.push_back(&begin(bytes));
  }
  ASSERT_TRUE(until([&] {
    if (b_.messages->look()) {
      held.push_back(b_.messages->shown());
    }
    return held.size() == kRecordWindow;
  }));
  turns(200);
  EXPECT_FALSE(b_.messages->look());
  const Bytes brief = pattern(2, 30);
  EXPECT_EQ(send_all(c, b_, brief), 0);
  expect_next(b_, brief);
  for (Unexpected* const arrival : held) {
    b_.messages->refuse(*arrival);
  }
  for (uint32_t i = 0; i < sends.size(); ++i) {
    if (i < kRecordWindow) {
      EXPECT_EQ(ended(a_, *sends[i]), -ECONNREFUSED);
      continue;
    }
    expect_next(b_, bytes);
    EXPECT_EQ(ended(a_, *sends[i]), 0);
  }
}

TEST_F(Long, CancelAtAnyTime) {
  const Bytes bytes = pattern(1, kLarge);
  for (uint32_t turn = 0; turn < 60; turn += 1 + turn / 16) {
    SendRequest& sent = begin(bytes);
    Unexpected& arrival = next_long();
    Bytes got(kLarge);
    int at_once = 0;
    RecvRequest* received = nullptr;
    ASSERT_EQ(b_.receive(arrival, got.data(), got.size(), nullptr, &at_once, &received), 0);
    turns(turn);
    const bool sender = turn % 2 == 0;
    const int rc = sender ? a_.messages->cancel(sent) : b_.messages->cancel(*received);
    ASSERT_EQ(rc, 0) << turn;
    const int sent_status = ended(a_, sent);
    const int status = ended(b_, *received);
    // All bytes may have arrived before the other side learns of the cancellation.
    ASSERT_TRUE(sent_status == -ECANCELED || sent_status == 0) << turn << " " << sent_status;
    ASSERT_TRUE(status == -ECANCELED || (status == 0 && got == bytes)) << turn << " " << status;
  }
  expect_well();
}

TEST_F(Long, CancelAWaitingSend) {
  const Bytes bytes = pattern(1, kLarge);
  SendRequest& first = begin(bytes);  // there is no session yet
  SendRequest& second = begin(bytes);
  EXPECT_EQ(a_.messages->cancel(second), 0);
  EXPECT_EQ(a_.messages->cancel(second), -ENOENT);
  EXPECT_EQ(ended(a_, second), -ECANCELED);
  expect_next(b_, bytes);
  EXPECT_EQ(ended(a_, first), 0);
  expect_well();
}

TEST_F(Long, ASendToAContextThatDoesNotExistIsRefused) {
  const Bytes bytes = pattern(1, kInParts);
  SendRequest* sent = nullptr;
  ASSERT_EQ(send(a_, b_.dest_id(), 9, bytes, &sent), 0);
  EXPECT_EQ(ended(a_, *sent), -ECONNREFUSED);
  EXPECT_EQ(send(a_, b_.dest_id(), kContexts, bytes, &sent), -EINVAL);
  EXPECT_EQ(a_.send(tag::address(2, 5), nullptr, 1, nullptr, &sent), -EINVAL);
  EXPECT_EQ(a_.send(tag::address(2, 5), bytes.data(), tag::kLengthMax + 1, nullptr, &sent),
            -EINVAL);
}

// A long message to a context that closes in the middle must not continue to the next context of
// that number.
TEST_F(Long, AReopenedContextGetsNoPartsOfOldMessages) {
  const uint32_t free = unshared();
  for (uint32_t turn = 0; turn < 12; ++turn) {
    expect_well();
    const Bytes bytes = pattern(1, 60000);  // in parts: the border is raised below
    SendRequest* sent = nullptr;
    const int rc = send(a_, b_.dest_id(), b_.id(), bytes, &sent);
    turns(turn);
    b_.messages.reset();
    turns(turn % 3);
    b_.open();
    ASSERT_FALSE(HasFatalFailure());
    const int status = rc == 0 ? ended(a_, *sent) : 0;
    ASSERT_TRUE(status == 0 || status == -ECONNREFUSED) << status;
    while (a_.send(tag::address(2, 5), "x", 1, nullptr, &sent) == -ECONNREFUSED) {
    }
    ASSERT_TRUE(wait_for(b_));
    Bytes got;
    ASSERT_EQ(receive(b_, kLongest, &got), 0);
    EXPECT_EQ(got.size(), 1u);
    static_cast<void>(until([&] { return !a_.messages->busy(); }));
    while (tag::Request* const done = a_.messages->next_done()) {
      a_.free(*done);
    }
  }
  EXPECT_EQ(b_.port->stats().cut_off, 0u);
  b_.messages.reset();
  EXPECT_GE(unshared(), free);
}

TEST_F(Long, APeerThatGoesInTheMiddle) {
  for (const uint64_t size : {kInParts, kLarge}) {
    for (uint32_t turn = 0; turn < 40; turn += 5) {
      auto other = std::make_unique<Talker>(port(7), 0);
      MessagePort& gone = *other->port;
      const Bytes bytes = pattern(turn, size);
      SendRequest* there = nullptr;
      SendRequest* back = nullptr;
      const int rc_there = send(*other, b_.dest_id(), b_.id(), bytes, &there);
      int rc_back = send(b_, 7, 0, bytes, &back);
      if (rc_back == -ECONNRESET) {  // of the one before
        rc_back = send(b_, 7, 0, bytes, &back);
      }
      turns(turn);
      other->attend();
      b_.attend();
      turns(turn);
      ASSERT_GE(rc_there, 0);
      ASSERT_GE(rc_back, 0);
      Bytes got(size);
      RecvRequest* received = nullptr;
      int status = 1;
      int rc = 1;
      if (b_.messages->look()) {
        Unexpected* const arrival = b_.messages->shown();
        ASSERT_NE(arrival, nullptr);
        rc = b_.receive(*arrival, got.data(), size, nullptr, &status, &received);
        turns(turn / 2);
      }
      other.reset();
      close(gone);
      if (rc == 0) {
        status = ended(b_, *received);
        EXPECT_TRUE(status == -ECONNRESET || status == -ECANCELED || (status == 0 && got == bytes))
            << status;
      }
      if (rc_back == 0) {
        const int end = ended(b_, *back);
        EXPECT_TRUE(end == -ECONNRESET || end == -ECONNREFUSED || end == -EHOSTUNREACH || end == 0)
            << end;
      }
      while (until([&] { return !b_.messages->busy(); }) && b_.messages->look()) {
        Unexpected* const arrival = b_.messages->shown();  // a whole message, or only its request
        ASSERT_NE(arrival, nullptr);
        b_.messages->refuse(*arrival);
      }
      EXPECT_FALSE(b_.messages->busy());
    }
  }
  expect_well();
}

TEST_F(Long, ClosingEndsRequestsUnderWay) {
  const Bytes bytes = pattern(1, kLarge);
  SendRequest& sent = begin(bytes);
  Unexpected& arrival = next_long();
  Bytes got(kLarge);
  int status = 0;
  RecvRequest* received = nullptr;
  ASSERT_EQ(b_.receive(arrival, got.data(), got.size(), nullptr, &status, &received), 0);
  turns(3);
  std::thread other([&] {  // the other side makes progress, so that the request ends
    for (uint32_t i = 0; i < 2'000'000 && !(sent.stage == tag::Stage::kDone); ++i) {
      a_.port->progress();
      a_.attend();
    }
  });
  b_.messages.reset();
  other.join();
  EXPECT_TRUE((sent.stage == tag::Stage::kDone));
}

}  // namespace
}  // namespace rio::msg::test
