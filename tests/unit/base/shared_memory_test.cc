// Memory of this process that others may map, and the list of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/shared_memory.hpp"

namespace rio::base {
namespace {

constexpr size_t kBytes = 4 * 4096;
constexpr size_t kAlign = 1 << 20;

void* map_whole(const Fd& fd, int protection) {
  return mmap(nullptr, kBytes, protection, MAP_SHARED, fd.get(), 0);
}

TEST(SharedMemory, OthersReadWhatIsWritten) {
  SharedMemory memory;
  ASSERT_EQ(SharedMemory::create(kBytes, kAlign, SharedMemory::Others::kRead, &memory), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.va()) % kAlign, 0u);
  EXPECT_EQ(memory.len_bytes(), kBytes);
  memory.va()[kBytes - 1] = 7;
  void* const seen = map_whole(memory.fd(), PROT_READ);
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(static_cast<uint8_t*>(seen)[kBytes - 1], 7);
  EXPECT_EQ(static_cast<uint8_t*>(seen)[0], 0);
  munmap(seen, kBytes);
}

TEST(SharedMemory, OthersWriteOnlyIfTheyMay) {
  for (const auto others : {SharedMemory::Others::kRead, SharedMemory::Others::kWrite}) {
    SharedMemory memory;
    ASSERT_EQ(SharedMemory::create(kBytes, 4096, others, &memory), 0);
    const bool may = others == SharedMemory::Others::kWrite;
    void* const seen = map_whole(memory.fd(), PROT_READ | PROT_WRITE);
    EXPECT_EQ(seen != MAP_FAILED, may);
    EXPECT_EQ(pwrite(memory.fd().get(), "x", 1, 0) == 1, may);
    EXPECT_NE(ftruncate(memory.fd().get(), 4096), 0);
    if (seen != MAP_FAILED) {
      munmap(seen, kBytes);
    }
  }
}

TEST(SharedMemory, AForkedChildWritesToACopy) {
  SharedMemory memory;
  ASSERT_EQ(SharedMemory::create(kBytes, 4096, SharedMemory::Others::kRead, &memory), 0);
  memory.va()[5] = 1;
  const pid_t child = fork();
  if (child == 0) {
    const bool has_copy = memory.va()[5] == 1;
    memory.va()[5] = 2;
    _exit(has_copy ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.va()[5], 1);
}

TEST(ReadableAreas, ListTheLargestThatAreThere) {
  ReadableAreas areas;
  std::vector<SharedMemory> memory(3);
  for (size_t i = 0; i < memory.size(); ++i) {
    ASSERT_EQ(SharedMemory::create((i + 1) * 4096, 4096, SharedMemory::Others::kRead, &memory[i]),
              0);
    areas.add(memory[i]);
  }
  const std::vector<ReadableAreas::Area> two = areas.largest(2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].va, memory[2].va());
  EXPECT_EQ(two[1].va, memory[1].va());
  EXPECT_NE(two[0].fd.get(), memory[2].fd().get());
  EXPECT_TRUE(areas.has(two[0].number));
  areas.remove(memory[2].va());
  EXPECT_FALSE(areas.has(two[0].number));
  EXPECT_TRUE(areas.has(two[1].number));
  areas.add(memory[2]);
  EXPECT_FALSE(areas.has(two[0].number)) << "memory at the same address is another area";
  EXPECT_EQ(areas.largest(9).size(), 3u);
}

}  // namespace
}  // namespace rio::base
