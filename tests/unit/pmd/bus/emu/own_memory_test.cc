// Memory that an emulated card allocates, beside user memory that is registered with it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "pmd/bus/emu/emu_memory.hpp"

namespace rio::pmd {
namespace {

constexpr size_t kBytes = 4 * 4096;

// The user may free memory while its registration is kept. The kernel then gives its addresses to
// the next mapping.
TEST(OwnMemory, MayLieWhereFreedMemoryOfTheUserWas) {
  const std::unique_ptr<EmuMemory> memory = own_memory();
  void* const user =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(user, MAP_FAILED);
  std::vector<IovaRun> runs;
  ASSERT_EQ(memory->map(user, kBytes, &runs), 0);
  ASSERT_EQ(munmap(user, kBytes), 0);
  DmaMemory own;
  ASSERT_EQ(memory->alloc(kBytes, 4096, &own), 0);
  if (own.va != user) {
    GTEST_SKIP() << "the kernel has taken other addresses";
  }
  std::memset(own.va, 1, kBytes);  // it is mapped
  EXPECT_NE(own.iova, runs[0].iova);
  memory->free(own);
}

}  // namespace
}  // namespace rio::pmd
