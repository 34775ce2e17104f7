// Runs of long messages for a dedicated queue: adjacent messages are pulled as one piece, with the
// same result as one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "tests/fuzz/fuzz_card.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kPageBytes = 4096;
constexpr uint32_t kPages = 10;  // number of buffers
constexpr uint32_t kRing = 8;    // mailbox 0 of source 2
constexpr uint32_t kEntries = 1u << FuzzCard::kLog2;

uint8_t byte_at(uint64_t address) {
  return static_cast<uint8_t>(address * 0x9E3779B9u >> 24 | 1);
}

/// Gives each address its own byte, and at most `gives` bytes in total.
class Pattern final : public model::Puller {
 public:
  uint64_t pull(std::span<const model::PullPiece> pieces) override {
    pieces_seen = pieces.size();
    uint64_t pulled = 0;
    for (const model::PullPiece& piece : pieces) {
      longest = std::max(longest, piece.len_bytes);
      for (uint32_t i = 0; i < piece.len_bytes && pulled < gives; ++i, ++pulled) {
        piece.to[i] = byte_at(piece.from + i);
      }
    }
    return pulled;
  }
  uint64_t gives = ~0ull;
  size_t pieces_seen = 0;
  uint32_t longest = 0;
};

struct Message {
  uint32_t page;  // the buffer's page
  uint64_t from;
  uint32_t length;
};

class Pulls : public testing::TestWithParam<bool> {
 protected:
  Pulls() : card_(GetParam(), 0) {
    card_.start_all();
    card_.in().puller = &puller_;
  }
  void post(std::span<const Message> messages) {
    for (const Message& message : messages) {
      const regs::DedicatedDesc entry{FuzzCard::buffers_iova() + message.page * kPageBytes,
                                      (message.length + 7) & ~7u, cookie(tail_)};
      std::memcpy(card_.ring(kRing) + tail_ % kEntries * sizeof(entry), &entry, sizeof(entry));
      ++tail_;
    }
    card_.write(regs::qp::tail(0, kRing), tail_);
  }
  void send(std::span<const Message> messages) {
    std::vector<model::PullPart> parts;
    for (const Message& message : messages) {
      parts.push_back({message.from, message.length, 0});
    }
    model::Frame frame{};
    frame.type = model::FrameType::kPull;
    frame.source = 2;
    frame.dest = FuzzCard::kId;
    frame.length = static_cast<uint16_t>(parts.size() * sizeof(model::PullPart));
    frame.ssize = 256;
    EXPECT_TRUE(card_.send(frame, reinterpret_cast<const uint8_t*>(parts.data()), frame.length,
                           false, true));
    std::memset(card_.buffers(), 0, kPages * kPageBytes);
    card_.step(2);
  }
  /// Expects the completions of these messages: good up to the last one of which the puller gave
  /// all bytes, and errors after that.
  void check(std::span<const Message> messages) {
    uint64_t sum = 0;
    for (const Message& message : messages) {
      sum += message.length;
      const bool came = sum <= puller_.gives;
      regs::EntryCpl cpl;
      std::memcpy(&cpl, card_.completions(kRing) + seen_ % kEntries * sizeof(cpl), sizeof(cpl));
      const uint32_t code = came ? 0 : static_cast<uint32_t>(regs::Status::kReceiveTimeout);
      ASSERT_EQ(cpl.status, code | (seen_ / kEntries % 2 == 0 ? 1u << 31 : 0)) << seen_;
      ASSERT_EQ(cpl.cookie, cookie(seen_));
      ASSERT_EQ(cpl.index, seen_);
      ASSERT_EQ(cpl.bytes, came ? (message.length + 7) & ~7u : 0);
      const uint8_t* const bytes = card_.buffers() + message.page * kPageBytes;
      for (uint32_t i = 0; came && i < message.length; ++i) {
        ASSERT_EQ(bytes[i], byte_at(message.from + i)) << seen_ << ' ' << i;
      }
      ++seen_;
    }
    const auto answer = sum <= puller_.gives ? model::Answer::kDone : model::Answer::kError;
    const std::vector<uint16_t> answers = card_.take_answers();
    ASSERT_EQ(answers,
              std::vector<uint16_t>{static_cast<uint16_t>(0xFF00 | static_cast<uint32_t>(answer))});
    card_.check();
  }
  /// Sends two messages, of which the second one has another length than its entry.
  void mismatch(uint32_t entry, uint32_t message) {
    const Message first = {0, 0x5000, 4096};
    post(std::vector<Message>{first, {1, 0x6000, entry}});
    send(std::vector<Message>{first, {1, 0x6000, message}});
    regs::EntryCpl cpls[2];  // in any order
    std::memcpy(cpls, card_.completions(kRing), sizeof(cpls));
    const uint32_t second = cpls[0].index == 1 ? 0 : 1;
    EXPECT_EQ(cpls[second].index, 1u);
    EXPECT_EQ(cpls[second].status, static_cast<uint32_t>(regs::Status::kSizeMismatch) | 1u << 31);
    EXPECT_EQ(cpls[1 - second].status, 1u << 31);
  }
  uint32_t random(uint32_t below) {
    x_ = x_ * 1664525u + 1013904223u;
    return (x_ >> 8) % below;
  }
  /// A random run: most messages are adjacent to the one before on both sides, and of full length.
  std::vector<Message> any_messages() {
    std::vector<Message> all;
    uint64_t from = 0x10000;
    for (uint32_t page = random(kPages); page < kPages; page += random(8) == 0 ? 2 : 1) {
      const uint32_t length = random(6) == 0 ? 256 * (1 + random(15)) - random(8) : kPageBytes;
      all.push_back({page, from, length});
      from += random(8) == 0 ? 2 * kPageBytes : length;
    }
    return all;
  }

  Pattern puller_;
  FuzzCard card_;
  uint32_t tail_ = 0;

 private:
  static uint32_t cookie(uint32_t index) { return index * 7 + 1000; }

  uint32_t x_ = 1;
  uint32_t seen_ = 0;
};

TEST_P(Pulls, AnyRunArrivesAsItsMessagesWould) {
  for (uint32_t round = 0; round < 400; ++round) {
    const std::vector<Message> messages = any_messages();
    uint64_t sum = 0;
    for (const Message& message : messages) {
      sum += message.length;
    }
    puller_.gives = random(4) == 0 ? random(static_cast<uint32_t>(sum)) : sum;
    post(messages);
    send(messages);
    check(messages);
    ASSERT_FALSE(HasFatalFailure()) << round;
  }
}

TEST_P(Pulls, AdjoiningMessagesAreOnePiece) {
  const std::vector<Message> whole = {{2, 0x5000, 4096}, {3, 0x6000, 4096}, {4, 0x7000, 4096}};
  post(whole);
  send(whole);
  EXPECT_EQ(puller_.pieces_seen, 1u);
  check(whole);
  const std::vector<Message> there = {{2, 0x5000, 4096}, {3, 0x9000, 4096}};
  post(there);
  send(there);
  EXPECT_EQ(puller_.pieces_seen, 2u);
  check(there);
  const std::vector<Message> here = {{2, 0x5000, 4096}, {4, 0x6000, 4096}};
  post(here);
  send(here);
  EXPECT_EQ(puller_.pieces_seen, 2u);
  check(here);
}

/// The partner sends more messages than the host has posted entries.
TEST_P(Pulls, NoMoreAreTakenThanEntriesArePosted) {
  const std::vector<Message> messages = {{0, 0x5000, 4096}, {1, 0x6000, 4096}, {2, 0x7000, 4096}};
  post(std::span(messages).first(2));
  send(messages);
  for (uint32_t i = 0; i < kPageBytes; ++i) {
    ASSERT_EQ(card_.buffers()[2 * kPageBytes + i], 0);
  }
  const std::vector<uint16_t> answers = card_.take_answers();
  EXPECT_EQ(answers, std::vector<uint16_t>{static_cast<uint16_t>(
                         0xFF00 | static_cast<uint32_t>(model::Answer::kRetry))});
}

TEST_P(Pulls, AMessageThatIsLongerThanItsEntryStopsTheRing) {
  mismatch(2048, 4096);
}

TEST_P(Pulls, AMessageThatIsShorterThanItsEntryStopsTheRing) {
  mismatch(4096, 2048);
}

/// The mapped memory ends behind the first message.
TEST_P(Pulls, NothingBehindMappedMemoryIsPulledTogetherWithIt) {
  const std::vector<Message> messages = {{kPages, 0x5000, 4096}, {kPages + 1, 0x6000, 4096}};
  puller_.gives = 0;
  post(messages);
  send(messages);
  EXPECT_EQ(puller_.longest, kPageBytes);
}

INSTANTIATE_TEST_SUITE_P(Modes, Pulls, testing::Bool());

}  // namespace
}  // namespace rio::test
