// Long messages between processes: pulled by the receiver, or copied twice.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "pmd/api/riopmd.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

using pmd::Status;

/// A transfer into a dedicated queue. Each message has bytes of its own, and addresses are aligned
/// to 8 only.
class ShmLarge : public Shm, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr uint32_t kMessages = 200;
  static constexpr uint32_t kBytes = 4096;
  static constexpr uint64_t kMisaligned = 24;
  static constexpr uint32_t kBurst = 11;

  static uint8_t byte_of(uint32_t message, uint32_t at) {
    return static_cast<uint8_t>(message * 31 + at * 7 + (at >> 8));
  }
  static int send_all(const std::string& name) {
    Member sender(name);
    pmd::DmaMemory memory;
    if (sender.endpoint().alloc(size_t{kMessages + 1} * kBytes, 4096, &memory) != 0) {
      return 1;
    }
    auto* const bytes = static_cast<uint8_t*>(memory.va) + kMisaligned;
    for (uint32_t i = 0; i < kMessages * kBytes; ++i) {
      bytes[i] = byte_of(i / kBytes, i % kBytes);
    }
    uint32_t posted = 0;
    uint32_t done = 0;
    const bool all = wait_until([&] {
      // One, then two at once, and so on: lengths that are pulled and lengths that are not.
      const uint32_t n = std::min(1 + posted % kBurst, kMessages - posted);
      pmd::TxMessage messages[kBurst];
      for (uint32_t i = 0; i < n; ++i) {
        messages[i] = {.iova = memory.iova + kMisaligned + uint64_t{posted + i} * kBytes,
                       .cookie = 0,
                       .dest_id = 1,
                       .length_bytes = kBytes,
                       .mbox = 2,
                       .flags = pmd::TxFlags::kOrder};
      }
      posted += n != 0 ? sender.endpoint().tx().burst(messages, static_cast<uint16_t>(n)) : 0;
      pmd::TxDone one{};
      if (sender.endpoint().tx().reap(&one, 1) == 1) {
        if (one.status != Status::kOk) {
          return true;
        }
        ++done;
      }
      return done == kMessages;
    });
    return all && done == kMessages ? 0 : 2;
  }
};

TEST_P(ShmLarge, LandsInItsPlace) {
  Pipe go;
  Child child([] { return send_all("shm:x,id=2" + std::string(GetParam())); }, &go);
  Member one("shm:x,id=1" + std::string(GetParam()));
  pmd::DedicatedRxQueue* queue = nullptr;
  ASSERT_EQ(one.endpoint().open_dedicated(0, 2, 2, &queue), 0);
  pmd::DmaMemory memory;
  ASSERT_EQ(one.endpoint().alloc(size_t{kMessages} * kBytes, 4096, &memory), 0);
  go.tell();
  uint32_t posted = 0;
  uint32_t landed = 0;
  EXPECT_TRUE(wait_until([&] {
    const pmd::DedicatedEntry entry{memory.iova + uint64_t{posted} * kBytes, posted, kBytes};
    posted += posted < kMessages ? queue->post(&entry, 1) : 0;
    pmd::EntryDone done{};
    if (queue->reap(&done, 1) == 1) {
      EXPECT_EQ(done.status, Status::kOk);
      EXPECT_EQ(done.bytes, kBytes);
      ++landed;
    }
    return landed == kMessages;
  }));
  EXPECT_EQ(child.exit_code(), 0);
  const auto* const bytes = static_cast<const uint8_t*>(memory.va);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kMessages * kBytes; ++i) {
    wrong += bytes[i] == byte_of(i / kBytes, i % kBytes) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(Copies, ShmLarge,
                         testing::Values("", ",pull=0", ",exact=1", ",quirks=0", ",stepping=thread",
                                         ",pcie=5"));

/// The second card has met the first one.
void meet(Member& one, Member& two) {
  two.send(1, "I am here");
  EXPECT_EQ(one.receive(), "2:I am here");
  EXPECT_EQ(two.done(), Status::kOk);
}

/// A card reads memory of another process's card.
class ShmReads : public Shm {
 protected:
  static constexpr uint32_t kBytes = 200 * 1024;
  static constexpr uint32_t kPackets = kBytes / 4096;

  /// @return a window onto `memory` of the target.
  static uint32_t show(Member& target, const pmd::DmaMemory& memory) {
    uint32_t window = 0;
    const pmd::Window wanted{.rio_addr = 0x1000,
                             .size_bytes = kBytes,
                             .iova = memory.iova,
                             .rights = pmd::WindowRights::kRead};
    EXPECT_EQ(target.endpoint().queues().windows().open(wanted, &window), 0);
    return window;
  }
  static void post(Member& reader, const pmd::DmaMemory& to) {
    const pmd::DmaRequest read{.rio_addr = 0x1000,
                               .iova = to.iova,
                               .cookie = 7,
                               .dest_id = 1,
                               .length_bytes = kBytes,
                               .op = regs::DmaOp::kNread,
                               .prio = 0};
    EXPECT_EQ(reader.endpoint().dma().post(&read, 1), 1u);
  }
  /// @param target null: it does not poll.
  static Status end(Member& reader, Member* target) {
    pmd::EntryDone done{};
    EXPECT_TRUE(wait_until([&] {
      if (target != nullptr) {
        target->polls(1);
      }
      return reader.endpoint().dma().reap(&done, 1) == 1;
    }));
    return done.status;
  }
  void SetUp() override {
    Shm::SetUp();
    one_ = std::make_unique<Member>("shm:x,id=1");
    two_ = std::make_unique<Member>("shm:x,id=2");
    meet(*one_, *two_);
    ASSERT_EQ(one_->endpoint().alloc(kBytes, 4096, &from_), 0);
    ASSERT_EQ(two_->endpoint().alloc(kBytes, 4096, &to_), 0);
    window_ = show(*one_, from_);
    std::memset(from_.va, 0x5A, kBytes);
    one_->polls(300);  // the counters have what came before
    before_ = rx_packets();
  }
  [[nodiscard]] uint32_t rx_packets() { return one_->endpoint().card().counters().rx_packets; }
  /// The first read asks, and leases.
  void lease() {
    post(*two_, to_);
    ASSERT_EQ(end(*two_, one_.get()), Status::kOk);
    std::memset(from_.va, 0xA5, kBytes);
    one_->polls(300);
    before_ = rx_packets();
  }
  void TearDown() override {
    two_.reset();
    one_.reset();
    Shm::TearDown();
  }

  std::unique_ptr<Member> one_;
  std::unique_ptr<Member> two_;
  pmd::DmaMemory from_;
  pmd::DmaMemory to_;
  uint32_t window_ = 0;
  uint32_t before_ = 0;  // packets that the owner of the memory has counted
};

/// A card that was told where to read goes on while the memory's owner sleeps: nothing is read
/// twice.
TEST_F(ShmReads, ALongReadIsNotRepeatedSinceItsTargetSleeps) {
  post(*two_, to_);
  one_->polls(4);
  one_->endpoint().card().bus().emulation().before_sleep();
  ASSERT_EQ(end(*two_, nullptr), Status::kOk);
  EXPECT_EQ(std::memcmp(from_.va, to_.va, kBytes), 0);
  one_->polls(300);
  EXPECT_EQ(rx_packets() - before_, kPackets);
}

TEST_F(ShmReads, LeasedMemoryIsReadWithoutItsOwner) {
  lease();
  post(*two_, to_);
  ASSERT_EQ(end(*two_, nullptr), Status::kOk);
  EXPECT_EQ(std::memcmp(from_.va, to_.va, kBytes), 0);
  one_->polls(600);
  EXPECT_EQ(rx_packets() - before_, kPackets);
}

TEST_F(ShmReads, AClosedWindowEndsTheLease) {
  lease();
  ASSERT_EQ(one_->endpoint().queues().windows().close(window_), 0);
  post(*two_, to_);
  EXPECT_EQ(end(*two_, one_.get()), Status::kErrorResponse);
}

/// It has the destID of the one before, and perhaps memory at the same addresses.
TEST_F(ShmReads, ANewPartnerHasLeasedNothing) {
  lease();
  one_.reset();
  one_ = std::make_unique<Member>("shm:x,id=1");
  two_->send(1, "here");
  EXPECT_TRUE(wait_until([&] {
    one_->polls(1);
    pmd::TxDone done{};
    const bool is_done = two_->endpoint().tx().reap(&done, 1) == 1;
    if (is_done && done.status != Status::kOk) {
      two_->send(1, "here");  // the first ones may be lost with the partner before
    }
    return is_done && done.status == Status::kOk;
  }));
  post(*two_, to_);
  EXPECT_EQ(end(*two_, one_.get()), Status::kErrorResponse);
}

/// Without pulls, messages in order also travel several at a time; otherwise each would wait for
/// the answer to the one before, and both sides would sleep and wake for each.
TEST_F(Shm, OrderedMessagesThatAreNotPulledTravelTogether) {
  constexpr uint16_t kMessages = 7;
  constexpr uint16_t kBytes = 4096;
  Member one("shm:x,id=1,pull=0");
  Member two("shm:x,id=2,pull=0");
  meet(one, two);
  pmd::DmaMemory memory;
  ASSERT_EQ(two.endpoint().alloc(size_t{kMessages} * kBytes, kBytes, &memory), 0);
  pmd::TxMessage messages[kMessages];
  for (uint32_t i = 0; i < kMessages; ++i) {
    auto* const text = static_cast<char*>(memory.va) + size_t{i} * kBytes;
    std::snprintf(text, kBytes, "%u", i);
    messages[i] = {.iova = memory.iova + uint64_t{i} * kBytes,
                   .cookie = 0,
                   .dest_id = 1,
                   .length_bytes = kBytes,
                   .mbox = 0,
                   .flags = pmd::TxFlags::kOrder};
  }
  ASSERT_EQ(two.endpoint().tx().burst(messages, kMessages), kMessages);
  two.polls(16);
  for (uint32_t i = 0; i < kMessages; ++i) {  // meanwhile the sender's card does nothing
    EXPECT_EQ(one.receive(), "2:" + std::to_string(i));
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(two.done(), Status::kOk);
  }
}

/// A partner does not take long messages; their sender closes its card and goes on. Later contents
/// of the sender's memory must not arrive as messages.
TEST_F(Shm, AbandonedLongMessagesAreNotPulled) {
  Pipe closed;
  Pipe go;
  Child child(
      [&] {
        auto two = std::make_unique<Member>("shm:x,id=2", 2'000);
        two->send(1, "short");
        if (two->done() != Status::kOk) {
          return 1;
        }
        two->send(1, "long", 4000, Member::kCopiesMax);
        if (two->endpoint().queues().stop() != 0) {
          return 2;
        }
        two->scribble();  // the memory is its own again: the messages are in doubt
        closed.tell();
        pause();
        return 0;
      },
      &go);
  Member one("shm:x,id=1");
  go.tell();
  EXPECT_EQ(one.receive(), "2:short");
  EXPECT_EQ(closed.wait(), 1);
  std::string text;
  for (int i = 0; i < 2000 && !one.poll(&text); ++i) {
  }
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace rio::test
