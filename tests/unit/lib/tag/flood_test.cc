// Many peers send to one that receives in the reverse order: every send ends, and unexpected data
// is bounded.
#include <cstdlib>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using tag::RecvRequest;
using tag::SendRequest;

constexpr uint32_t kPeers = 63;
constexpr uint32_t kEach = 40;  // more than a window of requests, and more than a share of credit
constexpr uint32_t kBuffers = 512;

class TagFlood : public testing::Test {
 protected:
  TagFlood() {
    setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1);
    one_ = std::make_unique<TagNode>("shm:flood,id=1", 0, 1, 16, 16384, kBuffers);
    for (uint32_t i = 0; i < kPeers; ++i) {
      const std::string card = "shm:flood,id=" + std::to_string(i + 2);
      peers_.push_back(std::make_unique<TagNode>(card, 0, 1, 16, 16384, 128));
    }
  }
  ~TagFlood() override { unsetenv("RIO_RUNTIME_DIR"); }

  struct Sending {
    SendRequest request;
    std::vector<uint8_t> bytes;
  };

  /// Mixes small and large sizes.
  static uint64_t size_of(uint32_t peer, uint32_t number) {
    constexpr uint64_t kSizes[] = {8, 0, 300, 4000, 9000, 24000, 64, 16384, 50001, 4096};
    return kSizes[(peer + number) % std::size(kSizes)];
  }
  void send_all() {
    for (uint32_t number = 0; number < kEach; ++number) {
      for (uint32_t i = 0; i < kPeers; ++i) {
        auto& sending = sends_.emplace_back(std::make_unique<Sending>());
        sending->bytes = pattern(i * kEach + number, size_of(i, number));
        ASSERT_GE((*peers_[i])
                      ->send(one_->at(), number, sending->bytes.data(), sending->bytes.size(),
                             sending->request),
                  0);
      }
    }
  }
  void work() {
    one_->progress();
    for (const auto& peer : peers_) {
      peer->progress();
    }
  }
  void receive(uint32_t peer, uint32_t number) {
    const uint64_t length_bytes = size_of(peer, number);
    std::vector<uint8_t> buffer(length_bytes);
    RecvRequest request;
    const int rc =
        (*one_)->receive({number, 0, peers_[peer]->at()}, buffer.data(), length_bytes, request);
    ASSERT_GE(rc, 0);
    const auto is_done = [&] {
      work();
      return (*one_)->test(request);
    };
    ASSERT_TRUE(rc != 0 || wait_until(is_done)) << "peer " << peer << ", message " << number;
    ASSERT_EQ(request.status, 0) << "peer " << peer << ", message " << number;
    ASSERT_EQ(request.length_bytes, length_bytes);
    ASSERT_TRUE(buffer == pattern(peer * kEach + number, length_bytes));
  }

  TempDir dir_;
  std::vector<std::unique_ptr<Sending>> sends_;  // sends may be under way until the nodes are gone
  std::unique_ptr<TagNode> one_;
  std::vector<std::unique_ptr<TagNode>> peers_;
};

TEST_F(TagFlood, OfOneThatReceivesInTheReverseOrder) {
  send_all();
  for (uint32_t turn = 0; turn < 2000; ++turn) {
    work();  // all messages that can arrive without a receive have arrived
  }
  // Unexpected bytes are only in the port's buffers, of which some are still free.
  EXPECT_LE(one_->port->unshared(), kBuffers);
  for (uint32_t number = kEach; number-- > 0;) {
    for (uint32_t i = 0; i < kPeers && !HasFatalFailure(); ++i) {
      receive(i, number);
    }
  }
  uint64_t asked = 0;
  for (const auto& peer : peers_) {
    while (const tag::Request* const done = (*peer)->next_done()) {
      EXPECT_EQ(done->status, 0);
    }
    asked += (*peer)->stats().asked;
    EXPECT_EQ(peer->port->stats().cut_off, 0u);
  }
  EXPECT_NE(asked, 0u);
  EXPECT_EQ(one_->port->stats().cut_off, 0u);
}

// The number of remembered messages is bounded: a receive behind them is told so. Repeated, since
// the memory lent to them must come back each time.
TEST_F(TagPair, AReceiveBehindTooManyMessagesEnds) {
  constexpr uint32_t kMessages = msg::kWindowMax + 100;
  constexpr uint32_t kRounds = 5;  // together more than can be lent
  std::vector<SendRequest> sends(kMessages);
  for (uint32_t round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    for (SendRequest& send : sends) {
      ASSERT_EQ(a_->send_sync(b_.at(), 1, nullptr, 0, send), 0);
    }
    RecvRequest behind;
    RecvRequest any;
    ASSERT_EQ(b_->receive({2, 0, a_.at()}, nullptr, 0, behind), 0);
    ASSERT_EQ(b_->receive({3, 0, tag::kAnySource}, nullptr, 0, any), 0);
    EXPECT_EQ(wait(*b_, behind), -ENOBUFS);
    EXPECT_FALSE(b_->test(any));
    // The remembered messages arrive in order, and the others follow.
    for (uint32_t i = 0; i < kMessages; ++i) {
      RecvRequest receive;
      ASSERT_EQ(b_->receive({1, 0, a_.at()}, nullptr, 0, receive), 0);
      ASSERT_EQ(wait(*b_, receive), 0) << round << ", " << i;
      ASSERT_EQ(wait(*a_, sends[i]), 0) << round << ", " << i;
    }
    EXPECT_EQ(b_->cancel(any), 0);
    EXPECT_EQ(wait(*b_, any), -ECANCELED);
  }
}

// Part of a window came free before the window was used up, too little to be reported then.
TEST_F(TagPair, TheRestOfAWindowIsReported) {
  for (uint32_t freed = 1; freed < msg::kRecordWindow; ++freed) {
    std::vector<SendRequest> sends(msg::kRecordWindow + 1);
    for (uint32_t i = 0; i < freed; ++i) {
      RecvRequest receive;
      ASSERT_EQ(a_->send_sync(b_.at(), 1, nullptr, 0, sends[i]), 0);
      ASSERT_EQ(b_->receive({1, 0, a_.at()}, nullptr, 0, receive), 0);
      ASSERT_EQ(wait(*b_, receive), 0);
      ASSERT_EQ(wait(*a_, sends[i]), 0);
    }
    for (uint32_t i = freed; i < sends.size(); ++i) {
      ASSERT_EQ(a_->send_sync(b_.at(), i + 1 == sends.size() ? 2 : 3, nullptr, 0, sends[i]), 0);
    }
    RecvRequest behind;
    ASSERT_EQ(b_->receive({2, 0, a_.at()}, nullptr, 0, behind), 0);
    ASSERT_EQ(wait(*b_, behind), 0) << freed;
    for (uint32_t i = freed; i + 1 < sends.size(); ++i) {
      RecvRequest receive;
      const int begun = b_->receive({3, 0, a_.at()}, nullptr, 0, receive);
      ASSERT_TRUE(begun == 1 || (begun == 0 && wait(*b_, receive) == 0)) << begun;
      ASSERT_EQ(wait(*a_, sends[i]), 0);
    }
    ASSERT_EQ(wait(*a_, sends.back()), 0);
  }
}

// Without that credit an endpoint could not answer its peer while the peer does not answer.
TEST_F(TagPair, RequestsLeaveACreditForAnswers) {
  send(1, {1});  // afterwards both know each other
  work();
  std::vector<SendRequest> sends(2 * msg::kControlCredits);
  for (SendRequest& send : sends) {
    ASSERT_EQ(a_->send_sync(b_.at(), 2, nullptr, 0, send), 0);
  }
  for (uint32_t turn = 0; turn < 1000; ++turn) {
    a_.progress();
  }
  EXPECT_EQ(a_->stats().large, msg::kControlCredits - 1u);
  for (SendRequest& send : sends) {
    RecvRequest receive;
    const int begun = b_->receive({2, 0, a_.at()}, nullptr, 0, receive);
    ASSERT_TRUE(begun == 1 || (begun == 0 && wait(*b_, receive) == 0)) << begun;
    ASSERT_EQ(wait(*a_, send), 0);
  }
}

}  // namespace
}  // namespace rio::test
