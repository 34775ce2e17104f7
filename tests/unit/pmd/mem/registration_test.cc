#include "pmd/mem/registration.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/seed.hpp"
#include "tests/unit/pmd/mem/fake_bus.hpp"

namespace rio::pmd::mem {
namespace {

constexpr size_t kPage = FakeBus::kPage;

class MemoryMapTest : public testing::Test {
 protected:
  void SetUp() override { base_ = static_cast<uint8_t*>(std::aligned_alloc(kPage, 64 * kPage)); }
  void TearDown() override {
    EXPECT_EQ(bus_.bad_unmaps, 0);
    std::free(base_);
  }

  FakeBus bus_;
  MemoryMap map_{bus_};
  uint8_t* base_ = nullptr;
};

TEST_F(MemoryMapTest, RoundsToPages) {
  Registration reg;
  ASSERT_EQ(map_.register_range(base_ + 100, kPage, &reg), 0);
  EXPECT_EQ(reg->va, base_);
  EXPECT_EQ(reg->len_bytes, 2 * kPage);
  ASSERT_EQ(reg->runs.size(), 1u);
  uint64_t iova = 0;
  EXPECT_EQ(map_.lookup(base_ + 5000, 100, &iova), 0);
  EXPECT_EQ(iova, reg->runs[0].iova + 5000);
  reg.reset();
  EXPECT_TRUE(bus_.mapped.empty());
  EXPECT_EQ(bus_.mapped_bytes(), 0u);
  EXPECT_EQ(map_.lookup(base_ + 5000, 100, &iova), -ENOENT);
}

/// Else a page that both have until one writes to it may be left to the child, by card and all.
TEST_F(MemoryMapTest, ChildrenHaveNoWholePagesOfIt) {
  const auto child_has = [&](size_t page) {
    const pid_t child = fork();
    if (child == 0) {
      unsigned char resident = 0;
      _exit(mincore(base_ + page * kPage, kPage, &resident) == 0 ? 1 : 0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 1;
  };
  Registration a;
  Registration b;
  ASSERT_EQ(map_.register_range(base_ + 100, 2 * kPage, &a), 0);
  EXPECT_TRUE(child_has(0)) << "its first bytes are the program's";
  EXPECT_FALSE(child_has(1));
  EXPECT_TRUE(child_has(2));
  ASSERT_EQ(map_.register_range(base_ + kPage, kPage, &b), 0);
  a.reset();
  EXPECT_FALSE(child_has(1));
  b.reset();
  EXPECT_TRUE(child_has(1));
  bus_.addresses = true;
  ASSERT_EQ(map_.register_range(base_, kPage, &a), 0);
  EXPECT_TRUE(child_has(0)) << "an emulated card of this process";
}

TEST_F(MemoryMapTest, IdenticalRangesAreCounted) {
  Registration a;
  Registration b;
  ASSERT_EQ(map_.register_range(base_, kPage, &a), 0);
  ASSERT_EQ(map_.register_range(base_ + 8, 16, &b), 0);
  EXPECT_EQ(bus_.maps, 1);
  EXPECT_EQ(map_.regions(), 2u);
  a.reset();
  EXPECT_EQ(bus_.mapped.size(), 1u);
  EXPECT_EQ(b->runs[0].va, base_);
  b.reset();
  EXPECT_TRUE(bus_.mapped.empty());
}

TEST_F(MemoryMapTest, OverlapMapsOnlyNewPages) {
  Registration a;
  Registration b;
  Registration c;
  ASSERT_EQ(map_.register_range(base_ + 2 * kPage, 2 * kPage, &a), 0);
  ASSERT_EQ(map_.register_range(base_ + 6 * kPage, kPage, &b), 0);
  ASSERT_EQ(map_.register_range(base_, 10 * kPage, &c), 0);
  EXPECT_EQ(bus_.maps, 5);
  EXPECT_EQ(bus_.mapped_bytes(), 10 * kPage);
  uint64_t covered = 0;
  for (const IovaRun& run : c->runs) {
    covered += run.len_bytes;
  }
  EXPECT_EQ(covered, 10 * kPage);
  c.reset();
  EXPECT_EQ(bus_.mapped.size(), 2u);
  EXPECT_EQ(bus_.mapped_bytes(), 3 * kPage);
}

TEST_F(MemoryMapTest, StalePagesCannotBeRegisteredAgain) {
  Registration a;
  Registration b;
  ASSERT_EQ(map_.register_range(base_, 2 * kPage, &a), 0);
  ASSERT_EQ(map_.register_range(base_ + kPage, kPage, &b), 0);
  a.reset();
  Registration again;
  EXPECT_EQ(map_.register_range(base_, kPage, &again), -EBUSY);
  EXPECT_FALSE(again);
  EXPECT_EQ(map_.register_range(base_ + kPage, kPage, &again), 0);
  again.reset();
  b.reset();
  EXPECT_EQ(map_.register_range(base_, kPage, &again), 0);
}

TEST_F(MemoryMapTest, FailureLeavesNothing) {
  Registration a;
  ASSERT_EQ(map_.register_range(base_ + 2 * kPage, kPage, &a), 0);
  bus_.fail_map_at = reinterpret_cast<uintptr_t>(base_ + 5 * kPage);
  Registration b;
  EXPECT_EQ(map_.register_range(base_, 8 * kPage, &b), -ENOTSUP);
  EXPECT_FALSE(b);
  EXPECT_EQ(bus_.mapped.size(), 1u);
  EXPECT_EQ(bus_.mapped_bytes(), kPage);
  EXPECT_EQ(map_.regions(), 1u);
}

TEST_F(MemoryMapTest, RefusesNonsense) {
  Registration reg;
  EXPECT_EQ(map_.register_range(nullptr, 1, &reg), -EINVAL);
  EXPECT_EQ(map_.register_range(base_, 0, &reg), -EINVAL);
  EXPECT_EQ(map_.register_range(base_, UINT64_MAX, &reg), -EINVAL);
  EXPECT_TRUE(bus_.mapped.empty());
}

TEST_F(MemoryMapTest, LookupFindsRunsAndGaps) {
  bus_.scatter = true;
  Registration reg;
  ASSERT_EQ(map_.register_range(base_, 2 * kPage, &reg), 0);
  uint64_t iova = 0;
  EXPECT_EQ(map_.lookup(base_ + 4000, 96, &iova), 0);
  EXPECT_EQ(map_.lookup(base_ + 4000, 97, &iova), -EXDEV);
  EXPECT_EQ(map_.lookup(base_ + 2 * kPage - 1, 2, &iova), -ENOENT);
  EXPECT_EQ(map_.lookup(base_, 0, &iova), -ENOENT);
  std::vector<IovaRun> runs;
  map_.lookup_runs(base_ + 4000, kPage, &runs);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].va, base_ + 4000);
  EXPECT_EQ(runs[0].len_bytes, 96u);
  EXPECT_EQ(runs[1].len_bytes, kPage - 96);
}

TEST_F(MemoryMapTest, AdoptedMemoryIsFoundAndNeverUnmapped) {
  DmaMemory memory;
  ASSERT_EQ(bus_.dma_alloc(2 * kPage, kPage, &memory), 0);
  ASSERT_EQ(map_.adopt(memory), 0);
  EXPECT_EQ(map_.adopt(memory), -EEXIST);
  uint64_t iova = 0;
  EXPECT_EQ(map_.lookup(static_cast<uint8_t*>(memory.va) + 10, 100, &iova), 0);
  EXPECT_EQ(iova, memory.iova + 10);
  Registration reg;
  ASSERT_EQ(map_.register_range(memory.va, 10, &reg), 0);
  EXPECT_EQ(bus_.maps, 0);
  EXPECT_EQ(map_.forget(memory), -EBUSY);
  reg.reset();
  EXPECT_EQ(map_.forget(memory), 0);
  EXPECT_EQ(map_.forget(memory), -ENOENT);
}

TEST_F(MemoryMapTest, MovesKeepOneOwner) {
  Registration a;
  ASSERT_EQ(map_.register_range(base_, kPage, &a), 0);
  Registration b(std::move(a));
  EXPECT_EQ(map_.regions(), 1u);
  Registration c;
  ASSERT_EQ(map_.register_range(base_ + kPage, kPage, &c), 0);
  c = std::move(b);
  EXPECT_EQ(map_.regions(), 1u);
  EXPECT_EQ(c->va, base_);
}

TEST_F(MemoryMapTest, RandomRangesAgreeWithACountOfPages) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  bus_.scatter = true;
  std::vector<std::pair<size_t, Registration>> held;
  for (int step = 0; step < 3000; ++step) {
    if (held.size() < 12 && random() % 2 == 0) {
      const size_t first = random() % 60;
      Registration reg;
      const int rc = map_.register_range(base_ + first * kPage, (1 + random() % 4) * kPage, &reg);
      ASSERT_TRUE(rc == 0 || rc == -EBUSY);
      if (rc == 0) {
        held.emplace_back(first, std::move(reg));
      }
    } else if (!held.empty()) {
      held.erase(held.begin() + random() % held.size());
    }
    for (const auto& [first, reg] : held) {
      uint64_t iova = 0;
      ASSERT_EQ(map_.lookup(base_ + first * kPage + 7, 9, &iova), 0);
      ASSERT_EQ(iova, reg->runs[0].iova + 7);
    }
    ASSERT_EQ(map_.regions(), held.size());
  }
  held.clear();
  EXPECT_TRUE(bus_.mapped.empty());
}

}  // namespace
}  // namespace rio::pmd::mem
