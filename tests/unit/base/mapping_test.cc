// Mapped memory with an owner.
#include "base/mapping.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rio::test {
namespace {

constexpr size_t kPage = 4096;

/// Whether any page of it is mapped.
[[nodiscard]] bool is_mapped(uint8_t* va, size_t len_bytes) {
  for (size_t at = 0; at < len_bytes; at += kPage) {
    unsigned char resident = 0;
    if (mincore(va + at, kPage, &resident) == 0) {
      return true;
    }
  }
  return false;
}

TEST(Mapping, PartsOfAFileAreShared) {
  base::Fd file(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 3 * kPage), 0);
  base::Mapping whole;
  base::Mapping part;
  ASSERT_EQ(base::Mapping::of_file(file, 0, 3 * kPage, &whole), 0);
  ASSERT_EQ(base::Mapping::of_file(file, 2 * kPage, kPage, &part), 0);
  file.reset();
  part.va()[5] = 7;
  EXPECT_EQ(whole.va()[2 * kPage + 5], 7);
  EXPECT_EQ(whole.len_bytes(), 3 * kPage);
  uint8_t* const va = part.va();
  part.reset();
  EXPECT_FALSE(part.valid());
  EXPECT_FALSE(is_mapped(va, kPage));
}

TEST(Mapping, AFailureLeavesTheOldOne) {
  base::Mapping mapping;
  ASSERT_EQ(base::Mapping::of_memory(kPage, 1, &mapping), 0);
  uint8_t* const va = mapping.va();
  EXPECT_EQ(base::Mapping::of_file(base::Fd(), 0, kPage, &mapping), -EBADF);
  EXPECT_EQ(base::Mapping::of_memory(0, 1, &mapping), -EINVAL);
  EXPECT_EQ(base::Mapping::of_memory(SIZE_MAX - 5, 1, &mapping), -ENOMEM);
  EXPECT_EQ(base::Mapping::of_memory(SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, &mapping), -ENOMEM);
  EXPECT_EQ(mapping.va(), va);
}

TEST(Mapping, MemoryAtAMultiple) {
  for (const size_t align_bytes : {size_t{1}, size_t{64}, kPage, 16 * kPage, size_t{4} << 20}) {
    base::Mapping mapping;
    ASSERT_EQ(base::Mapping::of_memory(3 * kPage, align_bytes, &mapping), 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping.va()) % std::max(align_bytes, kPage), 0u);
    EXPECT_TRUE(std::all_of(mapping.va(), mapping.va() + 3 * kPage, [](int b) { return b == 0; }));
    std::fill_n(mapping.va(), 3 * kPage, uint8_t{1});
    uint8_t* const va = mapping.va();
    base::Mapping moved = std::move(mapping);
    EXPECT_EQ(moved.va(), va);
    moved.reset();
    EXPECT_FALSE(is_mapped(va, 3 * kPage));
  }
}

TEST(Mapping, AddressesForOtherMappings) {
  base::Mapping space;
  ASSERT_EQ(base::Mapping::of_addresses(4 * kPage, 64 * kPage, &space), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(space.va()) % (64 * kPage), 0u);
  ASSERT_NE(mmap(space.va() + kPage, kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  space.va()[kPage] = 1;
  uint8_t* const va = space.va();
  space = {};
  EXPECT_FALSE(is_mapped(va, 4 * kPage));
}

TEST(Mapping, OnesTakeThePlaceOfMemory) {
  base::Fd file(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 2 * kPage), 0);
  base::Mapping memory;
  base::Mapping same;
  ASSERT_EQ(base::Mapping::of_file(file, 0, 2 * kPage, &memory), 0);
  ASSERT_EQ(base::Mapping::of_file(file, 0, 2 * kPage, &same), 0);
  ASSERT_EQ(base::put_ones_over(memory.va(), 2 * kPage), 0);
  EXPECT_EQ(std::count(memory.va(), memory.va() + 2 * kPage, 0xFF), 2 * kPage);
  memory.va()[7] = 1;
  EXPECT_EQ(same.va()[7], 0) << "the file is not written";
  EXPECT_EQ(base::put_ones_over(memory.va() + 1, kPage), -EINVAL);
  EXPECT_EQ(memory.va()[7], 1);
}

}  // namespace
}  // namespace rio::test
