#include "lib/tag/key_table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "lib/tag/entry.hpp"

namespace {
bool g_no_memory = false;  // lets allocations that may fail return null
}

// The operator by which the table allocates.
void* operator new[](size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return g_no_memory ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](size_t bytes) {
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace rio::tag {
namespace {

using Table = KeyTable<Receive, &Receive::by_key, true>;

constexpr HashSeed kSeed{.for_bits = 0x0123456789ABCDEF,
                         .for_source = 0xFEDCBA9876543210,
                         .for_both = 0x9E3779B97F4A7C15};
constexpr HashSeed kOtherSeed{.for_bits = 0x55AA55AA12345678,
                              .for_source = 0x87654321AA55AA55,
                              .for_both = 0xD1B54A32D192ED03};

Receive entry(uint32_t source, uint64_t bits) {
  Receive receive;
  receive.source = source;
  receive.bits = bits;
  return receive;
}

/// Receives with the keys 0, 1, 2, ...
std::vector<Receive> entries(uint64_t count) {
  std::vector<Receive> all;
  for (uint64_t i = 0; i < count; ++i) {
    all.push_back(entry(1, i));
  }
  return all;
}

struct NoMemory {
  NoMemory() { g_no_memory = true; }
  ~NoMemory() { g_no_memory = false; }
};

TEST(KeyTable, TheOldestOfAKeyIsFound) {
  Table table;
  ASSERT_EQ(table.create(kSeed, 4), 0);
  Receive a = entry(1, 7);
  Receive b = entry(1, 7);
  Receive other = entry(2, 7);
  table.add(a);
  table.add(b);
  table.add(other);
  EXPECT_EQ(*table.find(1, 7), &a);
  table.remove_first(table.find(1, 7));
  EXPECT_EQ(*table.find(1, 7), &b);
  table.remove_first(table.find(1, 7));
  EXPECT_EQ(*table.find(1, 7), nullptr);
  EXPECT_EQ(*table.find(2, 7), &other);
  EXPECT_EQ(*table.find(1, 8), nullptr);
}

TEST(KeyTable, AnyOfAKeyIsRemoved) {
  for (size_t gone = 0; gone < 3; ++gone) {
    Table table;
    ASSERT_EQ(table.create(kSeed, 4), 0);
    Receive all[] = {entry(1, 7), entry(1, 7), entry(1, 7), entry(1, 7)};
    for (size_t i = 0; i < 3; ++i) {
      table.add(all[i]);
    }
    table.remove(all[gone]);
    table.add(all[3]);  // it goes behind the youngest entry
    for (size_t i = 0; i < 4; ++i) {
      if (i != gone) {
        ASSERT_EQ(*table.find(1, 7), &all[i]) << gone;
        table.remove_first(table.find(1, 7));
      }
    }
    EXPECT_EQ(*table.find(1, 7), nullptr);
  }
}

TEST(KeyTable, EntriesStayWhereTheyAreAsItGrows) {
  constexpr uint64_t kKeys = 5000;
  Table table;
  ASSERT_EQ(table.create(kSeed, 1), 0);
  const uint64_t before = table.capacity();
  std::vector<Receive> all;
  for (uint64_t i = 0; i < 2 * kKeys; ++i) {
    all.push_back(entry(static_cast<uint32_t>(i % 3), (i % kKeys) * 64));
  }
  for (Receive& receive : all) {
    table.add(receive);
  }
  EXPECT_GE(table.capacity(), kKeys);
  EXPECT_LT(before, kKeys);
  uint64_t visited = 0;
  table.for_each([&](const Receive&) { ++visited; });
  EXPECT_EQ(visited, all.size());
  for (Receive& receive : all) {
    ASSERT_NE(*table.find(receive.source, receive.bits), nullptr);
    table.remove(receive);
  }
  visited = 0;
  table.for_each([&](const Receive&) { ++visited; });
  EXPECT_EQ(visited, 0u);
}

// The table remembers the bucket of the last key; after growth it must be the new bucket.
TEST(KeyTable, TheLastKeyIsFoundAgainAfterItMadeTheTableGrow) {
  Table table;
  ASSERT_EQ(table.create(kSeed, 1), 0);
  const uint64_t before = table.capacity();
  std::vector<Receive> all = entries(before + 1);
  for (Receive& receive : all) {
    table.add(receive);
    ASSERT_EQ(*table.find(receive.source, receive.bits), &receive);
  }
  EXPECT_GT(table.capacity(), before);
  Receive again = entry(1, before);
  table.add(again);
  EXPECT_EQ(*table.find(1, before), &all.back());
  table.remove(all.back());
  EXPECT_EQ(*table.find(1, before), &again);
}

TEST(KeyTable, RoomIsKeptForLaterKeys) {
  Table table;
  ASSERT_EQ(table.create(kSeed, 1000), 0);
  const uint64_t capacity = table.capacity();
  EXPECT_GE(capacity, 1000u);
  std::vector<Receive> all = entries(capacity);
  const NoMemory none;
  for (int round = 0; round < 3; ++round) {
    for (Receive& receive : all) {
      table.add(receive);
    }
    for (Receive& receive : all) {
      table.remove(receive);
    }
  }
  EXPECT_EQ(table.grow_failures(), 0u);
  EXPECT_EQ(table.capacity(), capacity);
}

TEST(KeyTable, WithoutMemoryChainsGrowAndNothingFails) {
  constexpr uint64_t kKeys = 1000;
  Table table;
  ASSERT_EQ(table.create(kSeed, 1), 0);
  const uint64_t capacity = table.capacity();
  std::vector<Receive> all = entries(kKeys + 1);
  {
    const NoMemory none;
    EXPECT_EQ(table.reserve(kKeys), -ENOMEM);
    for (uint64_t i = 0; i < kKeys; ++i) {
      table.add(all[i]);
    }
    EXPECT_EQ(table.capacity(), capacity);
    EXPECT_GE(table.grow_failures(), 1u);
    EXPECT_LE(table.grow_failures(), kKeys / capacity);  // far fewer than one try for each key
    for (uint64_t i = 0; i < kKeys; ++i) {
      ASSERT_EQ(*table.find(1, i), &all[i]);
    }
  }
  EXPECT_EQ(table.reserve(kKeys), 0);
  EXPECT_GE(table.capacity(), kKeys);
  table.add(all[kKeys]);
  for (Receive& receive : all) {
    ASSERT_EQ(*table.find(1, receive.bits), &receive);
  }
}

TEST(KeyTable, CreateSaysWhatIsWrong) {
  Table table;
  EXPECT_EQ(table.create(kSeed, Table::kKeysMax + 1), -EINVAL);
  const NoMemory none;
  EXPECT_EQ(table.create(kSeed, 1), -ENOMEM);
}

TEST(KeyTable, ATableByBitsDoesNotAskForTheSource) {
  KeyTable<Message, &Message::by_bits, false> table;
  ASSERT_EQ(table.create(kSeed, 4), 0);
  Message a;
  Message b;
  a.source = 1;
  b.source = 2;
  a.bits = b.bits = 9;
  table.add(a);
  table.add(b);
  EXPECT_EQ(*table.find(kAnySource, 9), &a);
  table.remove(a);
  EXPECT_EQ(*table.find(kAnySource, 9), &b);
}

/// @return the length of the longest chain with these keys.
template <class Bits, class Source>
uint64_t longest_chain(const HashSeed& seed, uint64_t keys, Bits&& bits, Source&& source) {
  Table table;
  EXPECT_EQ(table.create(seed, 1), 0);
  std::vector<Receive> all;
  all.reserve(keys);
  for (uint64_t i = 0; i < keys; ++i) {
    all.push_back(entry(source(i), bits(i)));
    table.add(all.back());
  }
  return table.longest_chain();
}

// A random function has chains of at most about 8 with that many keys.
constexpr uint64_t kLongest = 12;

TEST(KeyTable, OrderlyKeysSpread) {
  constexpr uint64_t kKeys = 1u << 17;
  const auto one = [](uint64_t) { return 1u; };
  const auto number = [](uint64_t i) { return i; };
  const auto zero = [](uint64_t) { return uint64_t{0}; };
  EXPECT_LE(longest_chain(kSeed, kKeys, number, one), kLongest);
  for (const int shift : {8, 16, 32, 40, 47}) {
    const auto shifted = [shift](uint64_t i) { return i << shift; };
    EXPECT_LE(longest_chain(kSeed, kKeys, shifted, one), kLongest) << shift;
  }
  const auto peer = [](uint64_t i) { return static_cast<uint32_t>(i); };
  const auto peer_high = [](uint64_t i) { return static_cast<uint32_t>(i << 14); };
  EXPECT_LE(longest_chain(kSeed, kKeys, zero, peer), kLongest);
  EXPECT_LE(longest_chain(kSeed, kKeys, zero, peer_high), kLongest);
  // Keys as MPI makes them: context, source and tag.
  const auto mpi = [](uint64_t i) { return (i % 7) << 48 | (i % 64) << 32 | i / 64; };
  const auto of64 = [](uint64_t i) { return static_cast<uint32_t>(i % 64); };
  EXPECT_LE(longest_chain(kSeed, kKeys, mpi, of64), kLongest);
}

// The test searches for keys that share a bucket under one seed; under another seed they do not.
TEST(KeyTable, APeerThatDoesNotKnowTheSeedCannotMakeChains) {
  constexpr uint64_t kKeys = 4096;
  constexpr int kShift = 64 - 14;  // a table for that many keys has 2^14 buckets
  std::vector<uint64_t> bad;
  for (uint64_t bits = 0; bad.size() < kKeys; ++bits) {
    if ((key_hash(kSeed, 1, bits) >> kShift) == 0) {
      bad.push_back(bits);
    }
  }
  const auto chosen = [&bad](uint64_t i) { return bad[i]; };
  const auto one = [](uint64_t) { return 1u; };
  EXPECT_EQ(longest_chain(kSeed, kKeys, chosen, one), kKeys);
  EXPECT_LE(longest_chain(kOtherSeed, kKeys, chosen, one), kLongest);
}

}  // namespace
}  // namespace rio::tag
