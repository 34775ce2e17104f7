#include <algorithm>

#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

class LargeData : public ::testing::Test {
 protected:
  /// Moves one transfer from end to end. @return the receiver's status.
  int move(uint64_t len_bytes, uint64_t from_offset, uint64_t to_offset, uint64_t capacity) {
    const Area from(len_bytes, from_offset, 0x11);
    const Area to(capacity, to_offset, 0x22);
    fill(from.at(), len_bytes, ++seed_);
    SendTransfer sent;
    RecvTransfer received;
    EXPECT_EQ(send(a_, b_, from, sent, seed_), 0);
    EXPECT_TRUE(work({&a_, &b_}, [&] { return b_.has_request(); }));
    if (!b_.has_request()) {
      return -ETIMEDOUT;
    }
    Request* const request = b_.context->take_request();
    EXPECT_EQ(request->body.len_bytes, len_bytes);
    EXPECT_EQ(request->body.match_bits, seed_);
    b_.context->receive_large(request, to.at(), capacity, received);
    EXPECT_TRUE(work({&a_, &b_}, [&] { return sent.done && received.done; }))
        << len_bytes << " bytes, " << from_offset << " to " << to_offset;
    EXPECT_EQ(sent.status, 0);
    const uint64_t moved = std::min(len_bytes, capacity);
    EXPECT_EQ(received.len_bytes, moved);
    EXPECT_EQ(received.true_bytes, len_bytes);
    EXPECT_EQ(std::memcmp(from.at(), to.at(), moved), 0);
    EXPECT_TRUE(to.guarded(moved));
    EXPECT_EQ(a_.context->next_sent(), &sent);
    EXPECT_EQ(a_.context->next_sent(), nullptr);
    EXPECT_EQ(b_.context->next_received(), &received);
    EXPECT_EQ(b_.context->next_received(), nullptr);
    return received.status;
  }

  const std::string wire_ =
      std::string("emu:") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Node a_{wire_, 5};
  Node b_{wire_, 6};
  uint32_t seed_ = 0;
};

TEST_F(LargeData, OfEachSizeArrivesAsItWas) {
  for (uint64_t bytes = 1; bytes <= (16u << 20); bytes += 1 + bytes / 3) {
    ASSERT_EQ(move(bytes, 0, 0, bytes), 0) << bytes;
  }
  ASSERT_EQ(move(16u << 20, 0, 0, 16u << 20), 0);
}

TEST_F(LargeData, ArrivesAtAnyAlignment) {
  for (uint64_t from = 0; from < 8; ++from) {
    for (uint64_t to = 0; to < 8; ++to) {
      ASSERT_EQ(move(30001, from, to, 30001), 0) << from << " " << to;
      ASSERT_EQ(move(9, from, to, 9), 0) << from << " " << to;
    }
  }
  for (const uint64_t from : {0, 1, 255, 256, 2048, 4088, 4095}) {
    for (const uint64_t to : {0, 3, 256, 2049, 4000, 4095}) {
      ASSERT_EQ(move(100000, from, to, 100000), 0) << from << " " << to;
    }
  }
}

TEST_F(LargeData, IsTruncatedToTheBuffer) {
  for (const uint64_t capacity : {0, 1, 7, 8, 255, 4096, 5000, 99999}) {
    EXPECT_EQ(move(100000, 3, 5, capacity), -EMSGSIZE) << capacity;
  }
}

TEST_F(LargeData, IsHardlyCopied) {
  const uint64_t bytes = 4u << 20;
  for (uint64_t offset = 0; offset < 4096; offset += 129) {
    const uint64_t before = a_.port->stats().copied + b_.port->stats().copied;
    const uint64_t placed = a_.port->stats().placed + b_.port->stats().placed;
    ASSERT_EQ(move(bytes, offset, (offset * 5) % 4096, bytes), 0);
    const uint64_t copied = a_.port->stats().copied + b_.port->stats().copied - before;
    const bool agree = (offset * 5) % 8 == offset % 8;
    EXPECT_LE(copied, (agree ? 0 : bytes) + 8192) << offset;
    EXPECT_EQ(copied + a_.port->stats().placed + b_.port->stats().placed - placed, 2 * bytes);
  }
}

}  // namespace
}  // namespace rio::msg::test
