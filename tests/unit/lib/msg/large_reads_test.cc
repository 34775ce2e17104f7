// Cards that read each other's processes: the receiver's card reads large data from where the
// sender shows it, without a grant. Data that cannot be read is granted, and none is read after its
// transfer has ended.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint64_t kBytes = 70'000;
constexpr uint32_t kEdge = 5;
constexpr uint32_t kTurnsMost = 16;  // after which a transfer is over

class LargeReads : public ::testing::Test {
 protected:
  LargeReads() {
    setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1);
    a_ = open(5);
    b_ = open(6);
  }
  ~LargeReads() override { unsetenv("RIO_RUNTIME_DIR"); }

  static std::unique_ptr<Node> open(uint32_t dest_id, uint32_t deliver_ms = 60'000) {
    return std::make_unique<Node>("shm:reads,id=" + std::to_string(dest_id), dest_id, 0,
                                  deliver_ms);
  }
  [[nodiscard]] bool is_done() { return sent_.done && received_.done; }
  [[nodiscard]] bool end() {
    return work({a_.get(), b_.get()}, [this] { return is_done(); });
  }
  void turns(uint32_t count) const {
    for (uint32_t i = 0; i < count; ++i) {
      a_->port->progress();
      b_->port->progress();
    }
  }
  /// Calls begin(), and lets the nodes work for half as many turns; if the number is odd, `first`
  /// works once more.
  [[nodiscard]] bool begin_at(const Area& from, const Area& to, uint32_t half_turns, Node& first) {
    const bool is_begun = begin(*a_, *b_, from, sent_, to, received_);
    turns(half_turns / 2);
    if (half_turns % 2 != 0) {
      first.port->progress();
    }
    return is_begun;
  }
  /// The receiver has all that was sent, and nothing else was written.
  static void expect_bytes(const std::vector<uint8_t>& sent, const Area& to) {
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), to.at()));
    EXPECT_TRUE(to.guarded(sent.size()));
  }
  static std::vector<uint8_t> filled(const Area& area, uint32_t seed) {
    fill(area.at(), area.size(), seed);
    return {area.at(), area.at() + area.size()};
  }
  /// Another transfer goes well.
  void expect_next() {
    const Area from(kBytes, 3, 0x11);
    const Area to(kBytes, 11, 0x22);
    const std::vector<uint8_t> bytes = filled(from, 77);
    SendTransfer sent;
    RecvTransfer received;
    ASSERT_TRUE(begin(*a_, *b_, from, sent, to, received));
    ASSERT_TRUE(work({a_.get(), b_.get()}, [&] { return sent.done && received.done; }));
    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(received.status, 0);
    expect_bytes(bytes, to);
  }

  std::unique_ptr<Node> a_;  // sends
  std::unique_ptr<Node> b_;
  SendTransfer sent_;
  RecvTransfer received_;

 private:
  rio::test::TempDir dir_;
};

TEST_F(LargeReads, NeedNoGrant) {
  for (const uint64_t bytes : {uint64_t{6}, uint64_t{4097}, kBytes, uint64_t{3'000'001}}) {
    SCOPED_TRACE(bytes);
    const Area from(bytes, 3, 0x11);
    const Area to(bytes, 11, 0x22);
    const std::vector<uint8_t> wanted = filled(from, 1);
    const uint64_t placed_a = a_->port->stats().placed;
    const uint64_t placed_b = b_->port->stats().placed;
    ASSERT_TRUE(begin(*a_, *b_, from, sent_, to, received_));
    ASSERT_TRUE(end());
    EXPECT_EQ(sent_.status, 0);
    EXPECT_EQ(sent_.len_bytes, bytes);
    EXPECT_EQ(received_.status, 0);
    EXPECT_EQ(received_.len_bytes, bytes);
    EXPECT_FALSE(received_.granted);
    expect_bytes(wanted, to);
    EXPECT_EQ(a_->port->stats().placed - placed_a, bytes - kEdge);
    EXPECT_EQ(b_->port->stats().placed - placed_b, bytes - kEdge);
  }
}

TEST_F(LargeReads, NeedNotLieAlike) {
  const Area from(kBytes, 3, 0x11);
  const Area to(kBytes, 10, 0x22);
  const std::vector<uint8_t> wanted = filled(from, 2);
  ASSERT_TRUE(begin(*a_, *b_, from, sent_, to, received_));
  ASSERT_TRUE(end());
  EXPECT_EQ(received_.status, 0);
  EXPECT_FALSE(received_.granted);
  expect_bytes(wanted, to);
}

TEST_F(LargeReads, AreNotOfMoreThanTheReceiverWants) {
  const Area from(kBytes, 3, 0x11);
  const Area to(kBytes / 2, 11, 0x22);
  const std::vector<uint8_t> wanted = filled(from, 3);
  ASSERT_TRUE(begin(*a_, *b_, from, sent_, to, received_));
  ASSERT_TRUE(end());
  EXPECT_EQ(received_.status, -EMSGSIZE);
  EXPECT_TRUE(std::equal(to.at(), to.at() + to.size(), wanted.begin()));
  EXPECT_TRUE(to.guarded(to.size()));
}

TEST_F(LargeReads, ThatFailAreGranted) {
  const Area from(kBytes, 3, 0x11);
  const Area to(kBytes, 11, 0x22);
  const std::vector<uint8_t> wanted = filled(from, 4);
  ASSERT_EQ(send(*a_, *b_, from, sent_), 0);
  ASSERT_TRUE(work({a_.get(), b_.get()}, [this] { return b_->has_request(); }));
  a_->port->rails().at(0).shown.renew();
  b_->context->receive_large(b_->context->take_request(), to.at(), to.size(), received_);
  ASSERT_TRUE(end());
  EXPECT_EQ(sent_.status, 0);
  EXPECT_EQ(received_.status, 0);
  EXPECT_TRUE(received_.granted);
  expect_bytes(wanted, to);
  expect_next();
}

TEST_F(LargeReads, EndWithTheirSender) {
  const Area from(kBytes, 3, 0x11);
  const Area to(kBytes, 11, 0x22);
  ASSERT_TRUE(begin(*a_, *b_, from, sent_, to, received_));
  a_.reset();
  ASSERT_TRUE(work({b_.get()}, [this] { return received_.done; }));
  EXPECT_TRUE(to.guarded(kBytes));
}

// The sender is there, but answers nothing any more. The cards wait for it.
TEST_F(LargeReads, EndWithTheSession) {
  b_.reset();
  b_ = open(6, 200);
  const Area from(kBytes, 3, 0x11);
  const Area to(kBytes, 11, 0x22);
  static_cast<void>(filled(from, 5));
  ASSERT_TRUE(begin(*a_, *b_, from, sent_, to, received_));
  const Route to_a = b_->to(*a_);
  ASSERT_TRUE(rio::test::wait_until([&] { return b_->port->send(to_a, "hello", 5) != -EAGAIN; }));
  ASSERT_TRUE(rio::test::wait_until([this] {
    b_->port->progress();
    return received_.done;
  }));
  EXPECT_EQ(received_.status, -ETIMEDOUT);
  EXPECT_FALSE(received_.read.is_on);
  std::memset(to.at(), 0x33, kBytes);
  turns(1000);
  EXPECT_TRUE(std::all_of(to.at(), to.at() + kBytes, [](uint8_t each) { return each == 0x33; }));
}

TEST_F(LargeReads, GetNothingThatWasWrittenAfterTheSenderGaveUp) {
  uint32_t cancelled = 0;
  uint32_t received = 0;
  for (uint32_t before = 0; before < kTurnsMost; ++before) {
    SCOPED_TRACE(before);
    const Area from(kBytes, 3, 0x11);
    const Area to(kBytes, 11, 0x22);
    const std::vector<uint8_t> wanted = filled(from, before);
    ASSERT_TRUE(begin_at(from, to, before, *b_));
    a_->context->cancel(sent_);
    ASSERT_TRUE(work({a_.get()}, [this] { return sent_.done; }));
    std::memset(from.at(), 0x99, kBytes);  // it is the user's again
    ASSERT_TRUE(end());
    if (received_.status == 0) {
      ++received;
      expect_bytes(wanted, to);
    } else {
      ++cancelled;
      EXPECT_EQ(received_.status, -ECANCELED);
      EXPECT_TRUE(to.guarded(kBytes));
    }
  }
  EXPECT_GT(cancelled, 0u);
  EXPECT_GT(received, 0u);
  expect_next();
}

TEST_F(LargeReads, EndIfTheReceiverGivesUp) {
  uint32_t cancelled = 0;
  uint32_t received = 0;
  for (uint32_t before = 0; before < kTurnsMost; ++before) {
    SCOPED_TRACE(before);
    const Area from(kBytes, 3, 0x11);
    const Area to(kBytes, 11, 0x22);
    const std::vector<uint8_t> wanted = filled(from, before);
    ASSERT_TRUE(begin_at(from, to, before, *a_));
    b_->context->cancel(received_);
    ASSERT_TRUE(work({a_.get(), b_.get()}, [this] { return received_.done; }));
    std::vector<uint8_t> mine(kBytes, 0x55);
    if (received_.status == 0) {
      ++received;
      mine = wanted;
    } else {
      ++cancelled;
      EXPECT_EQ(received_.status, -ECANCELED);
      std::copy(mine.begin(), mine.end(), to.at());
    }
    ASSERT_TRUE(end());
    turns(kTurnsMost);
    EXPECT_EQ(sent_.status, received_.status);
    expect_bytes(mine, to);
  }
  EXPECT_GT(cancelled, 0u);
  EXPECT_GT(received, 0u);
  expect_next();
}

}  // namespace
}  // namespace rio::msg::test
