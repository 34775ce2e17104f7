// Tagged messages between two cards: sizes, order, wildcards, probes, truncation, synchronous
// sends, contexts.
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using tag::kAnySource;
using tag::MessageInfo;
using tag::Pattern;
using tag::RecvRequest;
using tag::SendRequest;

class TagEndpoint : public TagPair {
 protected:
  /// Receives at b and compares. @param begun result of receive().
  void got(int begun, RecvRequest& request, const std::vector<uint8_t>& buffer,
           const std::vector<uint8_t>& wanted) {
    ASSERT_EQ(begun == 1 ? request.status : wait(*b_, request), 0);
    ASSERT_EQ(request.length_bytes, wanted.size());
    ASSERT_EQ(request.from, a_.at());
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), buffer.begin()));
    for (size_t i = wanted.size(); i < buffer.size(); ++i) {
      ASSERT_EQ(buffer[i], 0xEE) << "byte " << i << " beyond the message was written";
    }
  }
  [[nodiscard]] Pattern from_a(uint64_t bits, uint64_t ignore = 0) {
    return {bits, ignore, a_.at()};
  }
};

const uint64_t kSizes[] = {0,    1,    7,    8,    63,   64,   65,   255,  256,   4055,  4056,
                           4057, 4071, 4072, 4073, 4080, 8135, 8136, 8137, 12217, 16384, 65536};

TEST_F(TagEndpoint, EachSizeIntoAPostedReceive) {
  uint64_t number = 0;
  for (const uint64_t size : kSizes) {
    const std::vector<uint8_t> bytes = pattern(++number, size);
    std::vector<uint8_t> buffer(size + 9, 0xEE);
    RecvRequest receive;
    const int begun = b_->receive(from_a(number), buffer.data(), buffer.size(), receive);
    ASSERT_EQ(begun, 0);
    SendRequest request;
    const int sending = a_->send(b_.at(), number, bytes.data(), size, request);
    got(begun, receive, buffer, bytes);
    EXPECT_EQ(receive.message_bits, number);
    sent(sending, request);
  }
  EXPECT_EQ(b_->stats().unexpected, 0u);
}

TEST_F(TagEndpoint, EachSizeUnexpected) {
  uint64_t number = 0;
  for (const uint64_t size : kSizes) {
    const std::vector<uint8_t> bytes = pattern(++number, size);
    SendRequest request;
    const int sending = a_->send(b_.at(), number, bytes.data(), size, request);
    MessageInfo info{};
    ASSERT_TRUE(until([&] { return b_->probe(from_a(number), &info); }));
    EXPECT_EQ(info.length_bytes, size);
    EXPECT_EQ(info.bits, number);
    EXPECT_EQ(info.source, a_.at());
    work(3);
    std::vector<uint8_t> buffer(size + 9, 0xEE);
    RecvRequest receive;
    const int begun = b_->receive(from_a(number), buffer.data(), buffer.size(), receive);
    got(begun, receive, buffer, bytes);
    sent(sending, request);
  }
  EXPECT_EQ(b_->stats().unexpected, std::size(kSizes));
}

/// Endpoints with a limit of their own for how long sends wait for new peers.
class TagNewPeer : public TagEndpoint {
 protected:
  static constexpr uint32_t kEver = UINT32_MAX;
  static constexpr uint32_t kTries = 300;  // enough for PartsOut to send a request

  void be_patient(uint32_t new_peer_ms) {
    a_.endpoints[0].reset();
    ASSERT_EQ(
        tag::TaggedContext::create(*a_.port, 0, {.new_peer_ms = new_peer_ms}, a_.endpoints.data()),
        0);
    request_.may_wait = false;
  }
  int try_once() { return a_->send(b_.at(), 1, bytes_.data(), bytes_.size(), request_); }
  int try_often() {
    for (uint32_t i = 0; i < kTries; ++i) {
      a_.progress();
      if (const int rc = try_once(); rc != -EAGAIN) {
        return rc;
      }
    }
    return -EAGAIN;
  }
  /// Whether the message arrives although its context is not called any more. Another context lets
  /// the sender's card work, which may have to send a message again that the receiver had no time
  /// for.
  bool arrives() {
    MessageInfo info{};
    return wait_until([&] {
      a_.endpoints[1]->progress();
      b_.progress();
      return b_->probe(from_a(1), &info);
    });
  }

  const std::vector<uint8_t> bytes_ = pattern(1, 100);
  SendRequest request_;
};

// The caller may never call again, so a send that may not wait is sent at once or not accepted.
TEST_F(TagNewPeer, ASendThatMayNotWaitIsSentOrNotTaken) {
  be_patient(kEver);
  ASSERT_EQ(try_often(), -EAGAIN);
  EXPECT_EQ(request_.stage, tag::Stage::kIdle);
  int rc = -EAGAIN;
  ASSERT_TRUE(until([&] { return (rc = try_once()) != -EAGAIN; }));
  EXPECT_EQ(rc, 1);
  EXPECT_TRUE(arrives());
  EXPECT_EQ(a_->stats().stalled, 0u);
}

TEST_F(TagNewPeer, NothingOvertakesAWaitingSend) {
  be_patient(kEver);
  SendRequest first;
  ASSERT_EQ(a_->send(b_.at(), 1, bytes_.data(), 7, first), 0);
  ASSERT_EQ(try_often(), -EAGAIN);
  int rc = -EAGAIN;
  ASSERT_TRUE(until([&] { return (rc = try_once()) != -EAGAIN; }));
  EXPECT_EQ(rc, 1);
  ASSERT_EQ(wait(*a_, first), 0);
  ASSERT_TRUE(arrives());
  MessageInfo info{};
  ASSERT_TRUE(b_->probe(from_a(1), &info));
  EXPECT_EQ(info.length_bytes, 7u);
}

TEST_F(TagNewPeer, PatienceEnds) {
  be_patient(0);
  ASSERT_EQ(try_once(), 0);
  EXPECT_EQ(wait(*a_, request_), 0);
  EXPECT_TRUE(arrives());
}

// A send to a known peer without credit waits in the queue, and after a while sends a request.
TEST_F(TagNewPeer, AKnownPeerHasItsQueue) {
  be_patient(kEver);
  send(2, bytes_);
  std::vector<SendRequest> requests(kTries);
  uint32_t stalled = 0;
  for (SendRequest& request : requests) {
    request.may_wait = false;
    const int rc = a_->send(b_.at(), 1, bytes_.data(), bytes_.size(), request);
    ASSERT_GE(rc, 0);
    stalled += rc == 0 ? 1 : 0;
  }
  EXPECT_GT(stalled, 0u);
  std::vector<uint8_t> buffer(bytes_.size(), 0xEE);
  for (SendRequest& request : requests) {
    RecvRequest receive;
    got(b_->receive(from_a(1), buffer.data(), buffer.size(), receive), receive, buffer, bytes_);
    ASSERT_TRUE(until([&] { return request.stage == tag::Stage::kIdle || a_->test(request); }));
  }
}

TEST_F(TagEndpoint, MessagesAreReceivedByTheirBitsInAnyOrder) {
  for (uint64_t bits = 0; bits < 8; ++bits) {
    send(bits, pattern(bits, 100 + bits));
  }
  for (const uint64_t bits : {7u, 0u, 3u, 6u, 1u, 2u, 5u, 4u}) {
    std::vector<uint8_t> buffer(200, 0xEE);
    RecvRequest receive;
    const int begun = b_->receive(from_a(bits), buffer.data(), buffer.size(), receive);
    got(begun, receive, buffer, pattern(bits, 100 + bits));
  }
}

TEST_F(TagEndpoint, MessagesOfOneKeyAreReceivedInTheOrderOfSending) {
  constexpr uint64_t kLengths[] = {10, 20000, 64, 4072, 4073, 0, 9000, 1};
  constexpr size_t kCount = std::size(kLengths);
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<SendRequest> sends(kCount);
  std::vector<int> begun;
  for (size_t i = 0; i < kCount; ++i) {
    bytes.push_back(pattern(i, kLengths[i]));
    begun.push_back(a_->send(b_.at(), 1, bytes[i].data(), bytes[i].size(), sends[i]));
  }
  work();
  for (size_t i = 0; i < kCount; ++i) {
    std::vector<uint8_t> buffer(20000, 0xEE);
    RecvRequest receive;
    const int rc = b_->receive({1, 0, i % 2 == 0 ? a_.at() : kAnySource}, buffer.data(),
                               buffer.size(), receive);
    got(rc, receive, buffer, bytes[i]);
  }
  for (size_t i = 0; i < kCount; ++i) {
    sent(begun[i], sends[i]);
  }
}

TEST_F(TagEndpoint, IgnoredBits) {
  std::vector<uint8_t> buffer(100, 0xEE);
  std::vector<uint8_t> other(100, 0xEE);
  RecvRequest low;
  RecvRequest high;
  ASSERT_EQ(b_->receive({0x1200, 0xFF, kAnySource}, buffer.data(), 100, low), 0);
  ASSERT_EQ(b_->receive({0x0034, 0xFF00, a_.at()}, other.data(), 100, high), 0);
  send(0x5634, pattern(1, 30));
  got(0, high, other, pattern(1, 30));
  EXPECT_EQ(high.message_bits, 0x5634u);
  send(0x1234, pattern(2, 40));
  got(0, low, buffer, pattern(2, 40));
  EXPECT_EQ(low.message_bits, 0x1234u);
}

TEST_F(TagEndpoint, Truncation) {
  for (const uint64_t size : {100u, 4072u, 10000u}) {
    for (const bool expected : {true, false}) {
      const std::vector<uint8_t> bytes = pattern(size, size);
      for (const uint64_t capacity : {uint64_t{0}, uint64_t{60}, size / 2, size - 1}) {
        std::vector<uint8_t> buffer(size, 0xEE);
        RecvRequest receive;
        int begun = 0;
        if (expected) {
          begun = b_->receive(from_a(size), buffer.data(), capacity, receive);
        }
        send(size, bytes);
        work(20);
        if (!expected) {
          begun = b_->receive(from_a(size), buffer.data(), capacity, receive);
        }
        ASSERT_EQ(begun == 1 ? receive.status : wait(*b_, receive), -EMSGSIZE);
        EXPECT_EQ(receive.length_bytes, size);
        ASSERT_TRUE(std::equal(buffer.begin(), buffer.begin() + static_cast<int64_t>(capacity),
                               bytes.begin()));
        for (uint64_t i = capacity; i < size; ++i) {
          ASSERT_EQ(buffer[i], 0xEE);
        }
      }
    }
  }
}

TEST_F(TagEndpoint, AClaimedMessageIsFoundByNoOtherCall) {
  MessageInfo info{};
  EXPECT_EQ(b_->claim(from_a(1), &info), nullptr);
  const std::vector<uint8_t> bytes = pattern(1, 9000);
  send(1, bytes);
  tag::Message* message = nullptr;
  ASSERT_TRUE(until([&] { return (message = b_->claim(from_a(1), &info)) != nullptr; }));
  EXPECT_EQ(info.length_bytes, 9000u);
  EXPECT_FALSE(b_->probe(from_a(1), &info));
  send(1, pattern(2, 10));
  std::vector<uint8_t> buffer(9000, 0xEE);
  RecvRequest second;
  int begun = b_->receive(from_a(1), buffer.data(), 9000, second);
  got(begun, second, buffer, pattern(2, 10));
  RecvRequest first;
  begun = b_->receive_claimed(*message, buffer.data(), 9000, first);
  got(begun, first, buffer, bytes);
  EXPECT_EQ(b_->receive_claimed(*message, buffer.data(), 9000, first), -ENOENT);
}

TEST_F(TagEndpoint, ASyncSendIsDoneWhenItWasMatched) {
  for (const uint64_t size : {0u, 50u, 4056u, 4057u, 30000u}) {
    const std::vector<uint8_t> bytes = pattern(size, size);
    SendRequest request;
    ASSERT_EQ(a_->send_sync(b_.at(), 1, bytes.data(), size, request), 0);
    work();
    EXPECT_FALSE(a_->test(request));
    std::vector<uint8_t> buffer(size, 0xEE);
    RecvRequest receive;
    const int begun = b_->receive(from_a(1), buffer.data(), size, receive);
    got(begun, receive, buffer, bytes);
    EXPECT_EQ(wait(*a_, request), 0);
  }
  // One receive matches out of order, the other one is posted first.
  SendRequest one;
  SendRequest two;
  ASSERT_EQ(a_->send_sync(b_.at(), 1, nullptr, 0, one), 0);
  ASSERT_EQ(a_->send_sync(b_.at(), 2, nullptr, 0, two), 0);
  RecvRequest receive;
  ASSERT_EQ(b_->receive(from_a(2), nullptr, 0, receive), 0);
  EXPECT_EQ(wait(*a_, two), 0);
  EXPECT_FALSE(a_->test(one));
  EXPECT_EQ(wait(*b_, receive), 0);
  ASSERT_EQ(b_->receive(from_a(1), nullptr, 0, receive), 0);
  EXPECT_EQ(wait(*a_, one), 0);
  EXPECT_EQ(wait(*b_, receive), 0);
}

TEST_F(TagEndpoint, ContextsAreApart) {
  SendRequest request;
  std::vector<uint8_t> buffer(8, 0xEE);
  for (uint32_t to = 0; to < 3; ++to) {
    for (uint32_t from = 0; from < 3; ++from) {
      const uint64_t word = to * 10 + from;
      const int begun = a_.endpoints[from]->send(b_.at(to), 7, &word, sizeof(word), request);
      ASSERT_GE(begun, 0);
      if (begun == 0) {
        ASSERT_EQ(wait(*a_.endpoints[from], request), 0);
      }
    }
  }
  work();
  for (uint32_t to = 0; to < 3; ++to) {
    for (uint32_t from = 0; from < 3; ++from) {
      uint64_t word = 0;
      RecvRequest receive;
      ASSERT_EQ(b_.endpoints[to]->receive({7, 0, a_.at(from)}, &word, sizeof(word), receive), 1);
      EXPECT_EQ(word, to * 10 + from);
    }
    MessageInfo info{};
    EXPECT_FALSE(b_.endpoints[to]->probe({0, UINT64_MAX, kAnySource}, &info));
  }
}

TEST_F(TagEndpoint, NextDoneReturnsRequestsInOrder) {
  std::vector<uint8_t> buffer(64);
  RecvRequest receives[4];
  for (RecvRequest& receive : receives) {
    ASSERT_EQ(
        b_->receive(from_a(static_cast<uint64_t>(&receive - receives)), buffer.data(), 64, receive),
        0);
  }
  for (const uint64_t bits : {2u, 0u, 3u, 1u}) {
    send(bits, pattern(bits, 20));
  }
  for (const uint64_t bits : {2u, 0u, 3u, 1u}) {
    tag::Request* done = nullptr;
    ASSERT_TRUE(until([&] { return (done = b_->next_done()) != nullptr; }));
    EXPECT_EQ(done, &receives[bits]);
    EXPECT_TRUE(done->is_receive);
  }
  EXPECT_EQ(b_->next_done(), nullptr);
}

TEST_F(TagEndpoint, WrongArguments) {
  SendRequest request;
  EXPECT_EQ(a_->send(kAnySource, 0, nullptr, 0, request), -EINVAL);
  EXPECT_EQ(a_->send(tag::address(6, 64), 0, nullptr, 0, request), -EINVAL);
  EXPECT_EQ(a_->send(b_.at(), 0, nullptr, tag::kLengthMax + 1, request), -EINVAL);
  std::unique_ptr<tag::TaggedContext> other;
  EXPECT_EQ(tag::TaggedContext::create(*a_.port, 0, {}, &other), -EBUSY);
  EXPECT_EQ(tag::TaggedContext::create(*a_.port, 64, {}, &other), -EINVAL);
}

/// The receiver makes no calls in the middle, so between two windows the sender's card has nothing
/// to do.
TEST_F(TagEndpoint, FlushWaitsForLargeDataThatWasMatched) {
  const std::vector<uint8_t> bytes = pattern(1, 4u << 20);
  std::vector<uint8_t> buffer(bytes.size());
  RecvRequest receive;
  SendRequest send;
  ASSERT_EQ(b_->receive({1, 0, kAnySource}, buffer.data(), buffer.size(), receive), 0);
  ASSERT_EQ(a_->send(b_.at(), 1, bytes.data(), bytes.size(), send), 0);
  ASSERT_TRUE(until([&] { return a_.port->stats().placed != 0; }));
  EXPECT_EQ(a_->flush(1), -ETIMEDOUT);  // a short timeout, so that the transfer is not given up
  ASSERT_EQ(wait(*b_, receive), 0);
  EXPECT_EQ(a_->flush(20000), 0);
  EXPECT_TRUE(a_->test(send));
  EXPECT_EQ(buffer, bytes);
}

}  // namespace
}  // namespace rio::test
