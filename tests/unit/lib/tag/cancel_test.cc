// Cancelled requests, and peers that go away.
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using tag::RecvRequest;
using tag::SendRequest;
using tag::Stage;

constexpr uint64_t kLarge = 100000;

class TagCancel : public TagPair {};

TEST_F(TagCancel, AWaitingReceive) {
  std::vector<uint8_t> buffer(100, 0xEE);
  RecvRequest receive;
  EXPECT_EQ(b_->cancel(receive), -ENOENT);
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer.data(), 100, receive), 0);
  EXPECT_EQ(b_->cancel(receive), 0);
  EXPECT_EQ(wait(*b_, receive), -ECANCELED);
  send(1, pattern(1, 50));
  work();
  EXPECT_EQ(buffer, std::vector<uint8_t>(100, 0xEE));
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer.data(), 100, receive), 1);
  EXPECT_EQ(receive.length_bytes, 50u);
  EXPECT_EQ(b_->cancel(receive), -ENOENT);
}

TEST_F(TagCancel, ASendThatIsNotSentYet) {
  const std::vector<uint8_t> bytes = pattern(1, 50);
  SendRequest first;
  SendRequest second;
  ASSERT_EQ(a_->send(b_.at(), 1, bytes.data(), 50, first), 0);  // not connected yet
  ASSERT_EQ(a_->send(b_.at(), 2, bytes.data(), 50, second), 0);
  EXPECT_EQ(a_->cancel(first), 0);
  EXPECT_EQ(wait(*a_, first), -ECANCELED);
  EXPECT_EQ(wait(*a_, second), 0);
  EXPECT_EQ(a_->cancel(second), -ENOENT);
  work();
  std::vector<uint8_t> buffer(50);
  RecvRequest receive;
  ASSERT_EQ(b_->receive({0, UINT64_MAX, a_.at()}, buffer.data(), 50, receive), 1);
  EXPECT_EQ(receive.message_bits, 2u);
}

TEST_F(TagCancel, AMatchedOrSentMessageEndsByItself) {
  const std::vector<uint8_t> bytes = pattern(1, 16000);
  std::vector<uint8_t> buffer(16000, 0xEE);
  SendRequest request;
  RecvRequest receive;
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer.data(), 16000, receive), 0);
  ASSERT_EQ(a_->send(b_.at(), 1, bytes.data(), 16000, request), 0);
  // It depends on the card whether all parts come at once.
  ASSERT_TRUE(until([&] {
    if (receive.stage == Stage::kMoving) {
      EXPECT_EQ(b_->cancel(receive), -EALREADY);
    }
    if (request.stage == Stage::kMoving) {
      EXPECT_EQ(a_->cancel(request), -EALREADY);
    }
    return receive.stage == Stage::kDone;
  }));
  EXPECT_EQ(wait(*b_, receive), 0);
  EXPECT_EQ(wait(*a_, request), 0);
  EXPECT_EQ(buffer, bytes);
}

TEST_F(TagCancel, LargeDataThatIsNeverReceived) {
  const std::vector<uint8_t> bytes = pattern(1, kLarge);
  SendRequest request;
  ASSERT_EQ(a_->send(b_.at(), 1, bytes.data(), kLarge, request), 0);
  ASSERT_TRUE(until([&] { return request.stage == Stage::kMoving; }));
  EXPECT_EQ(a_->cancel(request), 0);
  EXPECT_EQ(wait(*a_, request), -ECANCELED);
}

TEST_F(TagCancel, LargeDataIsDoneBeforeOrCancelledOnBothSides) {
  const std::vector<uint8_t> bytes = pattern(1, 4 * kLarge);
  for (uint32_t turns = 0; turns < 12; ++turns) {
    std::vector<uint8_t> buffer(bytes.size(), 0xEE);
    SendRequest request;
    RecvRequest receive;
    ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer.data(), buffer.size(), receive), 0);
    ASSERT_EQ(a_->send(b_.at(), 1, bytes.data(), bytes.size(), request), 0);
    work(turns);
    const int rc = b_->cancel(receive);
    ASSERT_TRUE(rc == 0 || rc == -ENOENT) << rc;
    const int status = wait(*b_, receive);
    ASSERT_TRUE(status == 0 || status == -ECANCELED) << status;
    if (status == 0) {
      EXPECT_EQ(buffer, bytes);
    }
    const std::vector<uint8_t> then = buffer;
    if (request.stage != Stage::kDone) {
      static_cast<void>(a_->cancel(request));
    }
    const int sent = wait(*a_, request);
    ASSERT_TRUE(sent == 0 || sent == -ECANCELED) << sent;
    work();
    EXPECT_EQ(buffer, then) << "bytes landed after the receive was done";
  }
}

TEST_F(TagCancel, APeerThatRestarts) {
  send(1, pattern(1, 10));
  std::vector<uint8_t> buffer(kLarge);
  RecvRequest exact;
  RecvRequest any;
  RecvRequest large;
  SendRequest sync;
  ASSERT_EQ(b_->receive({2, 0, a_.at()}, buffer.data(), 10, exact), 0);
  ASSERT_EQ(b_->receive({3, 0, tag::kAnySource}, buffer.data(), 10, any), 0);
  ASSERT_EQ(b_->send_sync(a_.at(), 4, buffer.data(), 10, sync), 0);
  work();
  a_.endpoints.clear();
  a_.port.reset();
  a_ = TagNode(wire_, 5, 3);
  const std::vector<uint8_t> bytes = pattern(3, 10);
  SendRequest request;
  const int begun = a_->send(b_.at(), 3, bytes.data(), 10, request);
  EXPECT_EQ(wait(*b_, exact), -ECONNRESET);
  const int status = wait(*b_, sync);
  EXPECT_TRUE(status == -ECONNRESET || status == -ECONNREFUSED) << status;
  EXPECT_EQ(wait(*b_, any), 0);
  EXPECT_EQ(any.length_bytes, 10u);
  sent(begun, request);
  // Messages received earlier can still be taken.
  RecvRequest first;
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer.data(), 10, first), 1);
  EXPECT_EQ(first.length_bytes, 10u);
}

TEST_F(TagCancel, AContextThatDoesNotExist) {
  SendRequest request;
  const int rc = a_->send(tag::address(6, 40), 1, nullptr, 0, request);
  ASSERT_EQ(rc, 0);
  EXPECT_EQ(wait(*a_, request), -ECONNREFUSED);
}

/// The sender makes no calls in the middle; its later messages arrive for an endpoint that is
/// closed.
TEST_F(TagCancel, AnEndpointThatClosesBeforeItsLargeData) {
  const std::vector<uint8_t> bytes = pattern(1, 4u << 20);
  std::vector<uint8_t> buffer(bytes.size());
  RecvRequest receive;
  SendRequest large;
  ASSERT_EQ(b_->receive({1, 0, tag::kAnySource}, buffer.data(), buffer.size(), receive), 0);
  ASSERT_EQ(a_->send(b_.at(), 1, bytes.data(), bytes.size(), large), 0);
  ASSERT_TRUE(until([&] { return b_.port->stats().placed != 0; }));
  tag::TaggedContext& other = *b_.endpoints[1];
  b_.endpoints.erase(b_.endpoints.begin());
  EXPECT_EQ(wait(*a_, large), -ECANCELED);
  // Other endpoints of the port still work.
  uint8_t byte = 0;
  SendRequest small;
  ASSERT_EQ(other.receive({2, 0, a_.at()}, &byte, 1, receive), 0);
  sent(a_->send(b_.at(1), 2, bytes.data(), 1, small), small);
  EXPECT_EQ(wait(other, receive), 0);
  EXPECT_EQ(byte, bytes[0]);
}

}  // namespace
}  // namespace rio::test
