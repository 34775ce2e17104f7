#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "pmd/mem/bounce_pool.hpp"
#include "pmd/mem/buffer_pool.hpp"
#include "tests/unit/pmd/mem/fake_bus.hpp"

namespace rio::pmd::mem {
namespace {

TEST(BouncePool, LastInFirstOut) {
  FakeBus bus;
  std::unique_ptr<BouncePool> pool;
  ASSERT_EQ(BouncePool::create(bus, 4, &pool), 0);
  const uint32_t a = pool->get();
  const uint32_t b = pool->get();
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 1u);
  EXPECT_EQ(pool->put(a), 0);
  EXPECT_EQ(pool->get(), a);
  EXPECT_EQ(pool->va(2) - pool->va(1), 4096);
  EXPECT_EQ(pool->iova(2) - pool->iova(1), 4096u);
  EXPECT_EQ(pool->iova(3) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pool->va(3)) % 4096, 0u);
}

TEST(BouncePool, ExhaustionIsAResult) {
  FakeBus bus;
  std::unique_ptr<BouncePool> pool;
  ASSERT_EQ(BouncePool::create(bus, 2, &pool), 0);
  const uint32_t a = pool->get();
  (void)pool->get();
  EXPECT_EQ(pool->get(), BouncePool::kNone);
  EXPECT_EQ(pool->get(), BouncePool::kNone);
  EXPECT_EQ(pool->put(a), 0);
  EXPECT_EQ(pool->get(), a);
}

TEST(BouncePool, BadPutsChangeNothing) {
  FakeBus bus;
  std::unique_ptr<BouncePool> pool;
  ASSERT_EQ(BouncePool::create(bus, 2, &pool), 0);
  const uint32_t a = pool->get();
  EXPECT_EQ(pool->put(a), 0);
  EXPECT_EQ(pool->put(a), -EALREADY);
  EXPECT_EQ(pool->put(2), -EINVAL);
  EXPECT_EQ(pool->put(BouncePool::kNone), -EINVAL);
  EXPECT_EQ(pool->free_count(), 2u);
}

TEST(BouncePool, PadsWithZeros) {
  FakeBus bus;
  std::unique_ptr<BouncePool> pool;
  ASSERT_EQ(BouncePool::create(bus, 1, &pool), 0);
  const uint32_t a = pool->get();
  std::memset(pool->va(a), 0xEE, 4096);
  const uint8_t bytes[] = {1, 2, 3};
  pool->copy_in(a, bytes, 3, 256);
  EXPECT_EQ(pool->va(a)[2], 3);
  EXPECT_EQ(pool->va(a)[3], 0);
  EXPECT_EQ(pool->va(a)[255], 0);
  EXPECT_EQ(pool->va(a)[256], 0xEE);
  uint8_t back[4] = {9, 9, 9, 9};
  pool->copy_out(a, back, 3);
  EXPECT_EQ(back[2], 3);
  EXPECT_EQ(back[3], 9);
}

TEST(BouncePool, CreateFailsClearly) {
  FakeBus bus;
  std::unique_ptr<BouncePool> pool;
  EXPECT_EQ(BouncePool::create(bus, 0, &pool), -EINVAL);
  EXPECT_EQ(BouncePool::create(bus, BouncePool::kCountMax + 1, &pool), -EINVAL);
  bus.fail_alloc = -ENOMEM;
  EXPECT_EQ(BouncePool::create(bus, 1, &pool), -ENOMEM);
  EXPECT_EQ(pool, nullptr);
}

TEST(BouncePool, GivesItsMemoryBack) {
  FakeBus bus;
  std::unique_ptr<BouncePool> pool;
  ASSERT_EQ(BouncePool::create(bus, 8, &pool), 0);
  EXPECT_EQ(bus.allocated.size(), 1u);
  pool.reset();
  EXPECT_TRUE(bus.allocated.empty());
}

TEST(BufferPool, SpreadsAddresses) {
  FakeBus bus;
  std::unique_ptr<BufferPool> pool;
  ASSERT_EQ(BufferPool::create(bus, 64, 8, &pool), 0);
  EXPECT_EQ(pool->stride_bytes(), 4352u);
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(pool->iova(i) % 256, 0u);
    EXPECT_EQ(pool->iova(i) - pool->iova(0), i * 4352u);
    EXPECT_EQ(pool->va(i) - pool->va(0), i * 4352);
  }
  EXPECT_GE(pool->memory().len_bytes, 64u * 4352);
  // Heads in different sets of a 32 KiB, 8-way L1: 64 sets of 64 bytes.
  std::set<uintptr_t> sets;
  for (uint32_t i = 0; i < 16; ++i) {
    sets.insert(reinterpret_cast<uintptr_t>(pool->va(i)) / 64 % 64);
  }
  EXPECT_EQ(sets.size(), 16u);
}

TEST(BufferPool, AcceptsCoarserAlignment) {
  FakeBus bus;
  std::unique_ptr<BufferPool> pool;
  ASSERT_EQ(BufferPool::create(bus, 5, 1024, &pool), 0);
  EXPECT_EQ(pool->stride_bytes(), 5120u);
  EXPECT_EQ(pool->iova(3) % 1024, 0u);
}

TEST(BufferPool, BurstsAreLastInFirstOut) {
  FakeBus bus;
  std::unique_ptr<BufferPool> pool;
  ASSERT_EQ(BufferPool::create(bus, 10, 256, &pool), 0);
  uint32_t first[4];
  uint32_t second[16];
  ASSERT_EQ(pool->get(first, 4), 4u);
  ASSERT_EQ(pool->get(second, 16), 6u);
  EXPECT_EQ(pool->get(second + 6, 1), 0u);
  std::set<uint32_t> all(first, first + 4);
  all.insert(second, second + 6);
  EXPECT_EQ(all.size(), 10u);
  EXPECT_EQ(pool->put(first, 4), 4u);
  uint32_t again[4];
  ASSERT_EQ(pool->get(again, 4), 4u);
  EXPECT_EQ(std::memcmp(first, again, sizeof(first)), 0);
  EXPECT_EQ(pool->free_count(), 0u);
}

TEST(BufferPool, NeverOverflows) {
  FakeBus bus;
  std::unique_ptr<BufferPool> pool;
  ASSERT_EQ(BufferPool::create(bus, 4, 256, &pool), 0);
  uint32_t indices[4];
  ASSERT_EQ(pool->get(indices, 2), 2u);
  EXPECT_EQ(pool->put(indices, 4), 2u);
  EXPECT_EQ(pool->free_count(), 4u);
}

TEST(BufferPool, CreateFailsClearly) {
  FakeBus bus;
  std::unique_ptr<BufferPool> pool;
  EXPECT_EQ(BufferPool::create(bus, 0, 256, &pool), -EINVAL);
  EXPECT_EQ(BufferPool::create(bus, 1, 3, &pool), -EINVAL);
  EXPECT_EQ(BufferPool::create(bus, 1, 8192, &pool), -EINVAL);
  bus.fail_alloc = -ENOMEM;
  EXPECT_EQ(BufferPool::create(bus, 1, 256, &pool), -ENOMEM);
}

}  // namespace
}  // namespace rio::pmd::mem
