// A receive of large data from a known source makes an offer: the peer's next message needs no
// request.
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using tag::RecvRequest;
using tag::SendRequest;

constexpr uint64_t kLarge = 100000;

class TagOffer : public TagPair {
 protected:
  /// Makes both endpoints known to each other.
  TagOffer() {
    for (TagNode* from : {&a_, &b_}) {
      TagNode& to = from == &a_ ? b_ : a_;
      SendRequest request;
      RecvRequest receive;
      uint8_t byte = 0;
      EXPECT_EQ(to->receive({9, 0, from->at()}, &byte, 1, receive), 0);
      const int begun = (*from)->send(to.at(), 9, &byte, 1, request);
      EXPECT_EQ(wait(*to, receive), 0);
      EXPECT_TRUE(begun == 1 || wait(**from, request) == 0);
    }
    work();
  }
  /// Sends large data from a to b.
  void send_large(uint64_t bits) {
    bytes_ = pattern(bits, kLarge);
    ASSERT_EQ(a_->send(b_.at(), bits, bytes_.data(), kLarge, send_), 0);
  }

  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(kLarge, 0xEE);
  std::vector<uint8_t> other_ = std::vector<uint8_t>(kLarge, 0xDD);
  SendRequest send_;
  RecvRequest receive_;
};

TEST_F(TagOffer, IsAccepted) {
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(b_->receive({i, 0, a_.at()}, buffer_.data(), kLarge, receive_), 0);
    EXPECT_EQ(b_->stats().offers, i);
    work();
    send_large(i);
    EXPECT_EQ(wait(*b_, receive_), 0);
    EXPECT_EQ(wait(*a_, send_), 0);
    EXPECT_EQ(buffer_, bytes_);
  }
}

TEST_F(TagOffer, IsMadeOnlyWhereItMayHelp) {
  ASSERT_EQ(b_->receive({1, 0, tag::kAnySource}, buffer_.data(), kLarge, receive_), 0);
  RecvRequest small;
  ASSERT_EQ(b_->receive({2, 0, a_.at()}, other_.data(), 100, small), 0);
  EXPECT_EQ(b_->stats().offers, 0u);
  EXPECT_EQ(b_->cancel(receive_), 0);
  EXPECT_EQ(b_->cancel(small), 0);
}

/// The message matches an earlier receive, from any source.
TEST_F(TagOffer, AnEarlierReceiveTakesTheMessage) {
  ASSERT_EQ(b_->receive({1, 0, tag::kAnySource}, other_.data(), kLarge, receive_), 0);
  RecvRequest offered;
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer_.data(), kLarge, offered), 0);
  EXPECT_EQ(b_->stats().offers, 1u);
  work();
  send_large(1);
  EXPECT_EQ(wait(*b_, receive_), 0);
  EXPECT_EQ(wait(*a_, send_), 0);
  EXPECT_EQ(other_, bytes_);
  EXPECT_EQ(buffer_, std::vector<uint8_t>(kLarge, 0xEE));
  send_large(1);
  EXPECT_EQ(wait(*b_, offered), 0);
  EXPECT_EQ(buffer_, bytes_);
  EXPECT_EQ(wait(*a_, send_), 0);
}

TEST_F(TagOffer, IsRevokedWithItsReceive) {
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer_.data(), kLarge, receive_), 0);
  EXPECT_EQ(b_->stats().offers, 1u);
  work();
  EXPECT_EQ(b_->cancel(receive_), 0);
  EXPECT_EQ(wait(*b_, receive_), -ECANCELED);
  send_large(1);  // before the sender learns of it
  work();
  EXPECT_EQ(buffer_, std::vector<uint8_t>(kLarge, 0xEE));
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, other_.data(), kLarge, receive_), 0);
  EXPECT_EQ(wait(*b_, receive_), 0);
  EXPECT_EQ(wait(*a_, send_), 0);
  EXPECT_EQ(other_, bytes_);
  EXPECT_EQ(buffer_, std::vector<uint8_t>(kLarge, 0xEE));
}

TEST_F(TagOffer, SmallMessagesGoBefore) {
  ASSERT_EQ(b_->receive({1, 0, a_.at()}, buffer_.data(), kLarge, receive_), 0);
  work();
  send(1, pattern(7, 40));
  EXPECT_EQ(wait(*b_, receive_), 0);
  EXPECT_EQ(receive_.length_bytes, 40u);
  RecvRequest next;
  ASSERT_EQ(b_->receive({2, 0, a_.at()}, other_.data(), kLarge, next), 0);
  send_large(2);
  EXPECT_EQ(wait(*b_, next), 0);
  EXPECT_EQ(wait(*a_, send_), 0);
  EXPECT_EQ(other_, bytes_);
}

}  // namespace
}  // namespace rio::test
