// An endpoint sends to itself, over a card that cannot hear itself.
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using tag::kAnySource;
using tag::MessageInfo;
using tag::Pattern;
using tag::RecvRequest;
using tag::SendRequest;

const uint64_t kSizes[] = {0, 1, 8, 60, 4056, 4057, 16384, 16385, 300001};

class TagSelf : public testing::Test {
 protected:
  static constexpr uint64_t kEager = 16384;

  [[nodiscard]] Pattern mine(uint64_t bits = 1) { return {bits, 0, own_.at()}; }
  void expect_got(const RecvRequest& request, const std::vector<uint8_t>& buffer,
                  const std::vector<uint8_t>& wanted) {
    EXPECT_EQ(request.status, 0);
    EXPECT_EQ(request.length_bytes, wanted.size());
    EXPECT_EQ(request.from, own_.at());
    EXPECT_EQ(request.immediate.value, 77u);
    EXPECT_TRUE(buffer == wanted);
  }

  std::vector<SendRequest> sends_{64};
  std::vector<RecvRequest> receives_{64};
  TagNode own_{"emu:tagself", 5, 1, 16, kEager};
};

TEST_F(TagSelf, EachSizeIntoAPostedReceive) {
  for (const uint64_t size : kSizes) {
    for (const bool sync : {false, true}) {
      const std::vector<uint8_t> bytes = pattern(size, size);
      std::vector<uint8_t> buffer(size);
      const Pattern wanted = sync ? mine() : Pattern{0, UINT64_MAX, kAnySource};
      ASSERT_EQ(own_->receive(wanted, buffer.data(), size, receives_[0]), 0);
      ASSERT_EQ(sync ? own_->send_sync(own_.at(), 1, bytes.data(), size, sends_[0], {77, true})
                     : own_->send(own_.at(), 1, bytes.data(), size, sends_[0], {77, true}),
                1);
      ASSERT_EQ(own_->next_done(), &receives_[0]);
      expect_got(receives_[0], buffer, bytes);
    }
  }
}

TEST_F(TagSelf, EachSizeUnexpected) {
  for (const uint64_t size : kSizes) {
    for (const bool sync : {false, true}) {
      std::vector<uint8_t> bytes = pattern(size, size);
      const std::vector<uint8_t> wanted = bytes;
      std::vector<uint8_t> buffer(size);
      const bool stays = sync || size > kEager;
      ASSERT_EQ(sync ? own_->send_sync(own_.at(), 1, bytes.data(), size, sends_[0], {77, true})
                     : own_->send(own_.at(), 1, bytes.data(), size, sends_[0], {77, true}),
                stays ? 0 : 1);
      if (!stays) {
        std::fill(bytes.begin(), bytes.end(), 0xDD);  // the caller may reuse it
      }
      MessageInfo info{};
      ASSERT_TRUE(own_->probe(mine(), &info));
      EXPECT_EQ(info.length_bytes, size);
      EXPECT_EQ(info.source, own_.at());
      EXPECT_EQ(own_->next_done(), nullptr);
      ASSERT_EQ(own_->receive(mine(), buffer.data(), size, receives_[0]), 1);
      expect_got(receives_[0], buffer, wanted);
      EXPECT_EQ(own_->next_done(), stays ? &sends_[0] : nullptr);
      EXPECT_EQ(sends_[0].status, 0);
    }
  }
}

TEST_F(TagSelf, MessagesArriveInTheOrderOfSending) {
  std::vector<std::vector<uint8_t>> bytes;
  for (uint64_t i = 0; i < 40; ++i) {
    bytes.push_back(pattern(i, i % 3 == 0 ? kEager + i : 10 + i));
    ASSERT_GE(own_->send(own_.at(), i % 2, bytes[i].data(), bytes[i].size(), sends_[i], {77, true}),
              0);
  }
  for (const uint64_t odd : {1u, 0u}) {
    for (uint64_t i = odd; i < 40; i += 2) {
      std::vector<uint8_t> buffer(bytes[i].size());
      ASSERT_EQ(own_->receive(mine(odd), buffer.data(), buffer.size(), receives_[i]), 1);
      expect_got(receives_[i], buffer, bytes[i]);
    }
  }
}

TEST_F(TagSelf, Truncation) {
  for (const uint64_t size : {uint64_t{8}, uint64_t{9000}, kEager + 5}) {
    const std::vector<uint8_t> bytes = pattern(size, size);
    for (const bool posted : {true, false}) {
      std::vector<uint8_t> buffer(size, 0xEE);
      const auto receive = [&] {
        return own_->receive(mine(), buffer.data(), size - 3, receives_[0]);
      };
      ASSERT_TRUE(!posted || receive() == 0);
      ASSERT_GE(own_->send(own_.at(), 1, bytes.data(), size, sends_[0]), 0);
      ASSERT_TRUE(posted || receive() == 1);
      EXPECT_TRUE(!posted || own_->test(receives_[0]));
      EXPECT_EQ(receives_[0].status, -EMSGSIZE);
      EXPECT_EQ(receives_[0].length_bytes, size);
      EXPECT_EQ(buffer[size - 3], 0xEE);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - 3, buffer.begin()));
      while (own_->next_done() != nullptr) {
      }
    }
  }
}

TEST_F(TagSelf, AClaimedMessageIsReceivedOnce) {
  const std::vector<uint8_t> bytes = pattern(1, 50000);
  std::vector<uint8_t> buffer(50000);
  ASSERT_EQ(own_->send(own_.at(), 1, bytes.data(), 50000, sends_[0], {77, true}), 0);
  MessageInfo info{};
  tag::Message* const message = own_->claim(mine(), &info);
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(own_->cancel(sends_[0]), -EALREADY);
  EXPECT_FALSE(own_->probe(mine(), &info));
  ASSERT_EQ(own_->receive_claimed(*message, buffer.data(), 50000, receives_[0]), 1);
  expect_got(receives_[0], buffer, bytes);
  EXPECT_TRUE(own_->test(sends_[0]));
}

// Unreceived sends end when the endpoint closes, and so do sends whose message was claimed.
TEST(TagSelfEnd, AnUnreceivedSendEndsWithAnError) {
  SendRequest one;
  SendRequest two;
  {
    TagNode own("emu:tagself", 5);
    ASSERT_EQ(own->send_sync(own.at(), 1, nullptr, 0, one), 0);
    ASSERT_EQ(own->send_sync(own.at(), 2, nullptr, 0, two), 0);
    MessageInfo info{};
    ASSERT_NE(own->claim({2, 0, own.at()}, &info), nullptr);
  }
  EXPECT_EQ(one.status, -ECANCELED);
  EXPECT_EQ(two.status, -ECANCELED);
}

}  // namespace
}  // namespace rio::test
