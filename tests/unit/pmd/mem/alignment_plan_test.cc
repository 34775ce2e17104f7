#include "pmd/mem/alignment_plan.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace rio::pmd::mem {
namespace {

constexpr size_t kPage = 4096;
constexpr AlignRules kCard;

// The thread sanitizer (gcc's here) makes these loops some hundred times slower, and they have one
// thread: it gets every 61st turn.
#ifdef __SANITIZE_THREAD__
constexpr size_t kStride = 61;
#else
constexpr size_t kStride = 1;
#endif

/// Page-aligned memory with a map of its bus addresses.
class Arena {
 public:
  explicit Arena(size_t pages)
      : bytes_(static_cast<uint8_t*>(std::aligned_alloc(kPage, pages * kPage))), pages_(pages) {}
  ~Arena() { std::free(bytes_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// One run, or one for each page with holes between their bus addresses.
  void map(bool scatter) {
    runs.clear();
    if (!scatter) {
      runs.push_back({bytes_, 0x40000000, pages_ * kPage});
      return;
    }
    for (size_t i = 0; i < pages_; ++i) {
      runs.push_back({bytes_ + i * kPage, 0x40000000 + i * 3 * kPage, kPage});
    }
  }
  [[nodiscard]] uint8_t* at_iova(uint64_t iova) const {
    for (const IovaRun& run : runs) {
      if (iova >= run.iova && iova < run.iova + run.len_bytes) {
        return static_cast<uint8_t*>(run.va) + (iova - run.iova);
      }
    }
    return nullptr;
  }
  [[nodiscard]] Range range(size_t offset, size_t len) const {
    return {bytes_ + offset, len, runs};
  }
  [[nodiscard]] uint8_t* data() const { return bytes_; }
  [[nodiscard]] size_t size() const { return pages_ * kPage; }

  std::vector<IovaRun> runs;

 private:
  uint8_t* bytes_;
  size_t pages_;
};

/// What [S0]'s controller writes: the last segment at 256 * (n - 1), as full 256 bytes.
void land(const uint8_t* wire, uint32_t wire_bytes, uint8_t* base) {
  for (uint32_t at = 0; at < wire_bytes; at += 256) {
    std::memcpy(base + at, wire + at, 256);
  }
}

/// The card between two plans, with both quirks of [S0]: the last segment lands at 256 * (n - 1)
/// and is written as full 256 bytes. Bounced messages pass through buffers as the driver would do
/// it.
void transfer(const Plan& send, const Arena& source, const Plan& receive, const Arena& target) {
  ASSERT_EQ(send.messages.size(), receive.messages.size());
  for (size_t i = 0; i < send.messages.size(); ++i) {
    const PlanMessage& out = send.messages[i];
    const PlanMessage& in = receive.messages[i];
    ASSERT_EQ(out.wire_bytes, in.wire_bytes);
    ASSERT_EQ(out.len_bytes, in.len_bytes);
    ASSERT_EQ(in.wire_bytes % 256, 0);
    uint8_t wire[kPage] = {};
    if (out.placement == Placement::kInPlace) {
      ASSERT_EQ(out.iova % 8, 0u);
      ASSERT_EQ(source.at_iova(out.iova), out.va);
      std::memcpy(wire, out.va, out.wire_bytes);
    } else {
      std::memcpy(wire, out.va, out.len_bytes);
    }
    uint8_t bounce[kPage];
    uint8_t* base = bounce;
    if (in.placement == Placement::kInPlace) {
      ASSERT_EQ(in.iova % kPage, 0u);
      base = target.at_iova(in.iova);
      ASSERT_EQ(base, in.va);
    }
    land(wire, in.wire_bytes, base);
    if (in.placement == Placement::kBounced) {
      std::memcpy(in.va, bounce, in.len_bytes);
    }
  }
}

void check_transfer(const Arena& source, size_t source_offset, const Arena& target,
                    size_t target_offset, size_t len) {
  Plan receive;
  ASSERT_EQ(plan_receive(target.range(target_offset, len), kCard, &receive), 0);
  ASSERT_EQ(receive.bytes_placed + receive.bytes_copied, len);
  Plan send;
  ASSERT_EQ(plan_send(source.range(source_offset, len), receive.cut, kCard, Window{}, &send), 0);
  ASSERT_EQ(send.bytes_placed + send.bytes_copied, len);
  std::memset(target.data(), 0xEE, target.size());
  transfer(send, source, receive, target);
  ASSERT_EQ(std::memcmp(target.data() + target_offset, source.data() + source_offset, len), 0);
  const auto untouched = [](uint8_t byte) { return byte == 0xEE; };
  const uint8_t* begin = target.data();
  ASSERT_TRUE(std::all_of(begin, begin + target_offset, untouched)) << "before the buffer";
  ASSERT_TRUE(std::all_of(begin + target_offset + len, begin + target.size(), untouched))
      << "behind the buffer";
}

void fill(const Arena& arena, std::mt19937* random) {
  for (size_t i = 0; i < arena.size(); ++i) {
    arena.data()[i] = static_cast<uint8_t>((*random)());
  }
}

class Transfer : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(Transfer, EveryOffsetWithoutTouchingANeighbour) {
  const auto [scatter, registered] = GetParam();
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Arena source(5);
  Arena target(5);
  fill(source, &random);
  if (registered) {
    source.map(scatter);
    target.map(scatter);
  }
  for (size_t offset = 0; offset < kPage; offset += kStride) {
    const size_t lengths[] = {1,
                              255,
                              256,
                              257,
                              kPage,
                              kPage - offset + 256,
                              3 * kPage,
                              1 + random() % (3 * kPage),
                              1 + random() % (3 * kPage)};
    for (const size_t len : lengths) {
      check_transfer(source, random() % kPage, target, offset, len);
      ASSERT_FALSE(HasFatalFailure()) << "offset " << offset << " length " << len;
    }
  }
}

TEST_P(Transfer, EveryLength) {
  const auto [scatter, registered] = GetParam();
  std::mt19937 random(7);
  Arena source(5);
  Arena target(5);
  fill(source, &random);
  if (registered) {
    source.map(scatter);
    target.map(scatter);
  }
  for (size_t len = 1; len <= 3 * kPage; len += kStride) {
    check_transfer(source, (len * 8) % kPage, target, len % 7 == 0 ? 0 : (len * 5) % kPage, len);
    ASSERT_FALSE(HasFatalFailure()) << "length " << len;
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, Transfer, testing::Combine(testing::Bool(), testing::Bool()));

// The control: a tail that lands in place without the rule hits the neighbour.
TEST(Plan, WithoutTheRuleTheNeighbourIsHit) {
  const uint8_t wire[256] = {};
  uint8_t target[256];
  std::memset(target, 0xEE, sizeof(target));
  land(wire, 100, target);
  EXPECT_NE(target[100], 0xEE);
  EXPECT_NE(target[255], 0xEE);
}

TEST(Plan, InPlaceWhereAllFits) {
  Arena arena(4);
  arena.map(true);
  Plan plan;
  ASSERT_EQ(plan_receive(arena.range(kPage, 2 * kPage + 512), kCard, &plan), 0);
  EXPECT_EQ(plan.use, Use::kInPlace);
  EXPECT_EQ(plan.bytes_placed, 8704u);
  EXPECT_EQ(plan.bytes_copied, 0u);
  ASSERT_EQ(plan.messages.size(), 3u);
  EXPECT_EQ(plan.messages[1].iova, 0x40000000u + 2 * 3 * kPage);
  EXPECT_EQ(plan.messages[2].wire_bytes, 512);
}

TEST(Plan, EdgesOnlyHeadAndTailAreCopied) {
  Arena arena(4);
  arena.map(true);
  Plan plan;
  ASSERT_EQ(plan_receive(arena.range(100, 12288), kCard, &plan), 0);
  EXPECT_EQ(plan.use, Use::kEdges);
  EXPECT_EQ(plan.bytes_placed, 8192u);
  EXPECT_EQ(plan.bytes_copied, 4096u);
  ASSERT_EQ(plan.messages.size(), 4u);
  EXPECT_EQ(plan.messages[0].placement, Placement::kBounced);
  EXPECT_EQ(plan.messages[1].placement, Placement::kInPlace);
  EXPECT_EQ(plan.messages[2].placement, Placement::kInPlace);
  EXPECT_EQ(plan.messages[3].placement, Placement::kBounced);
  EXPECT_EQ(plan.messages[3].wire_bytes, 256);
}

TEST(Plan, NotRegisteredIsBouncedInTheFewestMessages) {
  Arena arena(4);
  Plan plan;
  ASSERT_EQ(plan_receive(arena.range(100, 10000), kCard, &plan), 0);
  EXPECT_EQ(plan.use, Use::kBounced);
  EXPECT_EQ(plan.cut, (Cut{0, 2, 4096, 1808}));
  EXPECT_EQ(plan.bytes_copied, 10000u);
  EXPECT_EQ(plan.messages[2].wire_bytes, 2048);
}

TEST(Plan, PartlyRegisteredBouncesTheRest) {
  Arena arena(4);
  arena.map(true);
  arena.runs.erase(arena.runs.begin() + 1);
  Plan plan;
  ASSERT_EQ(plan_receive(arena.range(0, 3 * kPage), kCard, &plan), 0);
  EXPECT_EQ(plan.use, Use::kEdges);
  EXPECT_EQ(plan.bytes_placed, 8192u);
  EXPECT_EQ(plan.messages[1].placement, Placement::kBounced);
}

TEST(Plan, SenderOnTheSameOffsetCopiesTheTailOnly) {
  Arena arena(4);
  arena.map(false);
  Plan plan;
  ASSERT_EQ(plan_send(arena.range(104, 12288), Cut{3992, 2, 4096, 104}, kCard, {}, &plan), 0);
  EXPECT_EQ(plan.bytes_placed, 8192u + 3992);
  EXPECT_EQ(plan.bytes_copied, 104u);
  ASSERT_EQ(plan.messages.size(), 4u);
  EXPECT_EQ(plan.messages[0].placement, Placement::kInPlace);
  EXPECT_EQ(plan.messages[0].len_bytes, 3992);
  EXPECT_EQ(plan.messages[0].wire_bytes, 4096);
  EXPECT_EQ(plan.messages[3].placement, Placement::kBounced);
}

TEST(Plan, SenderReadsNothingBehindItsRange) {
  Arena arena(4);
  arena.map(false);
  const AlignRules fine{8, 8, 8, 4096};
  Plan plan;
  // The head's padding would need 156 bytes, of which the range has 8.
  ASSERT_EQ(plan_send(arena.range(0, 108), Cut{100, 1, 8, 0}, fine, {}, &plan), 0);
  EXPECT_EQ(plan.messages[0].placement, Placement::kBounced);
  ASSERT_EQ(plan_send(arena.range(0, 256), Cut{100, 1, 152, 4}, fine, {}, &plan), 0);
  EXPECT_EQ(plan.messages[0].placement, Placement::kInPlace);
  EXPECT_EQ(plan.messages[2].placement, Placement::kBounced);
}

TEST(Plan, SenderBouncesAHeadWhosePaddingLiesElsewhere) {
  Arena arena(4);
  arena.map(true);
  Plan plan;
  ASSERT_EQ(plan_send(arena.range(104, 12288), Cut{3992, 2, 4096, 104}, kCard, {}, &plan), 0);
  EXPECT_EQ(plan.messages[0].placement, Placement::kBounced);
  EXPECT_EQ(plan.bytes_copied, 4096u);
}

/// Bytes that both sides together copy of a transfer whose first bytes, up to 8-byte alignment of
/// the sender, go another way (and are copied on both sides), as lib/msg does.
uint64_t copied(const Arena& source, size_t source_offset, const Arena& target,
                size_t target_offset, size_t len) {
  const size_t edge = (8 - source_offset % 8) % 8;
  Plan receive;
  Plan send;
  EXPECT_EQ(plan_receive(target.range(target_offset + edge, len - edge), kCard, &receive), 0);
  EXPECT_EQ(
      plan_send(source.range(source_offset + edge, len - edge), receive.cut, kCard, {}, &send), 0);
  return 2 * edge + receive.bytes_copied + send.bytes_copied;
}

TEST(Plan, FourMegabytesOnTheSameOffsetCopyLessThan4400Bytes) {
  constexpr size_t kLen = 4 << 20;
  Arena source(kLen / kPage + 1);
  source.map(false);
  Arena target(kLen / kPage + 1);
  target.map(true);
  uint64_t worst = 0;
  for (size_t offset = 0; offset < kPage; offset += kStride) {
    worst = std::max(worst, copied(source, offset, target, offset, kLen));
  }
  EXPECT_LE(worst, 4365u);
  EXPECT_GT(worst, 4096u);
}

TEST(Plan, FourMegabytesElsewhereAreCopiedOnce) {
  constexpr size_t kLen = 4 << 20;
  Arena source(kLen / kPage + 1);
  source.map(false);
  Arena target(kLen / kPage + 1);
  target.map(true);
  for (size_t offset = 0; offset < kPage; offset += 7 * kStride) {
    for (size_t other = 0; other < 16; ++other) {
      const uint64_t bytes = copied(source, other, target, offset, kLen);
      ASSERT_LE(bytes, kLen + 8192) << offset << ' ' << other;
      if (offset % 8 == other % 8) {
        ASSERT_LE(bytes, 4365u) << offset << ' ' << other;  // 8 is all that a sender needs
      }
    }
  }
}

TEST(Plan, SenderWithUnalignedMiddleCopiesOnce) {
  Arena arena(4);
  arena.map(false);
  Plan plan;
  ASSERT_EQ(plan_send(arena.range(1, 8192), Cut{0, 2, 4096, 0}, kCard, {}, &plan), 0);
  EXPECT_EQ(plan.use, Use::kBounced);
  EXPECT_EQ(plan.bytes_copied, 8192u);
}

TEST(Plan, SenderBouncesWhatCrossesToAnotherRun) {
  Arena arena(4);
  arena.map(true);
  Plan plan;
  ASSERT_EQ(plan_send(arena.range(8, 8192), Cut{0, 2, 4096, 0}, kCard, {}, &plan), 0);
  EXPECT_EQ(plan.use, Use::kBounced);
  arena.map(false);
  ASSERT_EQ(plan_send(arena.range(8, 8192), Cut{0, 2, 4096, 0}, kCard, {}, &plan), 0);
  EXPECT_EQ(plan.use, Use::kInPlace);
}

TEST(Plan, RunsThatContinueEachOtherAreOne) {
  Arena arena(2);
  arena.runs = {{arena.data(), 0x1000, kPage}, {arena.data() + kPage, 0x2000, kPage}};
  Plan plan;
  ASSERT_EQ(plan_send(arena.range(8, 4096), Cut{0, 1, 4096, 0}, kCard, {}, &plan), 0);
  ASSERT_EQ(plan.use, Use::kInPlace);
  EXPECT_EQ(plan.messages[0].iova, 0x1008u);
}

TEST(Plan, HeadThatNeedsNoPaddingIsSentInPlace) {
  Arena arena(3);
  arena.map(false);
  Plan plan;
  ASSERT_EQ(plan_send(arena.range(0, 3840 + 4096), Cut{3840, 1, 4096, 0}, kCard, {}, &plan), 0);
  EXPECT_EQ(plan.use, Use::kInPlace);
}

TEST(Plan, PagesThatLieApartAreUsedByPage) {
  Arena arena(4);
  arena.map(true);
  const AlignRules fine{8, 8, 256, 4096};
  Plan plan;
  ASSERT_EQ(plan_receive(arena.range(8, 3 * kPage), fine, &plan), 0);
  EXPECT_EQ(plan.cut, (Cut{4088, 2, 4096, 8}));
  EXPECT_EQ(plan.bytes_placed, 8192u);
  arena.map(false);
  ASSERT_EQ(plan_receive(arena.range(8, 3 * kPage), fine, &plan), 0);
  EXPECT_EQ(plan.use, Use::kInPlace);
}

TEST(Plan, WindowsAddUpToTheWhole) {
  Arena arena(5);
  arena.map(true);
  const Range range = arena.range(100, 4 * kPage);
  Plan whole;
  ASSERT_EQ(plan_receive(range, kCard, &whole), 0);
  size_t seen = 0;
  uint64_t placed = 0;
  for (uint64_t first = 0; first < whole.messages.size() + 2; first += 2) {
    Plan part;
    ASSERT_EQ(plan_receive(range, whole.cut, kCard, Window{first, 2}, &part), 0);
    for (const PlanMessage& message : part.messages) {
      EXPECT_EQ(message.va, whole.messages[seen].va);
      EXPECT_EQ(message.iova, whole.messages[seen].iova);
      ++seen;
    }
    placed += part.bytes_placed;
  }
  EXPECT_EQ(seen, whole.messages.size());
  EXPECT_EQ(placed, whole.bytes_placed);
}

/// Whether a window's list has that many whole messages in place, one behind the other.
bool lists_whole(const Plan& plan, uint64_t count, const AlignRules& rules) {
  bool whole = plan.messages.size() == count;
  for (size_t i = 0; whole && i < count; ++i) {
    const PlanMessage& message = plan.messages[i];
    whole = message.placement == Placement::kInPlace && message.wire_bytes == rules.message_max &&
            message.iova == plan.messages[0].iova + i * rules.message_max;
  }
  return whole;
}

/// The short way says of each window what the list does, or nothing. @param always it says
/// something wherever the list is so plain. @return of how many windows.
size_t compare_whole(const Range& range, const AlignRules& rules, bool always) {
  size_t said = 0;
  Cut cut;
  EXPECT_EQ(choose_cut(range, rules, &cut), 0);
  const uint64_t total = cut_messages(cut);
  for (uint64_t first = 0; first <= total; ++first) {
    for (uint64_t count = 1; count <= total + 1 - first; ++count) {
      Plan plan;
      EXPECT_EQ(plan_receive(range, cut, rules, Window{first, count}, &plan), 0);
      uint64_t iova = 0;
      const bool says = plan_whole(range, cut, rules, Window{first, count}, &iova);
      const bool lists = lists_whole(plan, count, rules);
      EXPECT_TRUE(says ? lists && iova == plan.messages[0].iova : !(lists && always))
          << first << ' ' << count;
      said += says ? 1 : 0;
    }
  }
  return said;
}

TEST(Plan, WholeMessagesAreAsListed) {
  Arena arena(8);
  AlignRules fine;
  fine.dedicated_addr = 8;
  AlignRules odd;  // whole messages do not keep to the alignment
  odd.message_max = 3072;
  size_t said = 0;
  for (const auto& [offset, len] : std::vector<std::pair<size_t, size_t>>{
           {0, 7 * kPage}, {100, 7 * kPage}, {100, 6 * kPage + 700}, {0, 2 * kPage + 256}}) {
    for (const bool scatter : {false, true}) {
      arena.map(scatter);
      said += compare_whole(arena.range(offset, len), kCard, !scatter);
      said += compare_whole(arena.range(offset, len), fine, !scatter);
      said += compare_whole(arena.range(offset, len), odd, false);
    }
  }
  EXPECT_GT(said, 0u);
}

TEST(Plan, TransmitKeepsLengths) {
  Arena arena(4);
  arena.map(false);
  Plan plan;
  ASSERT_EQ(plan_transmit(arena.range(8, 5000), kCard, {}, &plan), 0);
  ASSERT_EQ(plan.messages.size(), 2u);
  EXPECT_EQ(plan.use, Use::kInPlace);
  EXPECT_EQ(plan.messages[1].len_bytes, 904);
  EXPECT_EQ(plan.messages[1].wire_bytes, 904);
  ASSERT_EQ(plan_transmit(arena.range(9, 5000), kCard, {}, &plan), 0);
  EXPECT_EQ(plan.use, Use::kBounced);
}

TEST(Plan, RefusesBadArguments) {
  Arena arena(1);
  Plan plan;
  EXPECT_EQ(plan_receive(Range{nullptr, 1, {}}, kCard, &plan), -EINVAL);
  EXPECT_EQ(plan_receive(arena.range(0, 0), kCard, &plan), -EINVAL);
  EXPECT_EQ(plan_receive(Range{reinterpret_cast<void*>(UINTPTR_MAX - 10), 100, {}}, kCard, &plan),
            -EINVAL);
  EXPECT_EQ(plan_receive(arena.range(0, 8), AlignRules{8, 8192, 256, 4096}, &plan), -EINVAL);
  EXPECT_EQ(plan_send(arena.range(0, 8), Cut{0, 0, 0, 9}, kCard, {}, &plan), -EPROTO);
  EXPECT_EQ(plan_send(arena.range(0, 8), Cut{8, 1, 0, 0}, kCard, {}, &plan), -EPROTO);
}

}  // namespace
}  // namespace rio::pmd::mem
