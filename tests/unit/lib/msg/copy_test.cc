// Copies of each length at the very beginning and the very end of a page: no byte beyond the page
// is touched.
#include "lib/msg/copy.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace rio::msg {
namespace {

/// A page between two pages without access rights.
class Page {
 public:
  Page() : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* const at =
        mmap(nullptr, 3 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    memory_ = static_cast<uint8_t*>(at);
    EXPECT_EQ(mprotect(begin(), size_, PROT_READ | PROT_WRITE), 0);
  }
  ~Page() { munmap(memory_, 3 * size_); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  [[nodiscard]] uint8_t* begin() const { return memory_ + size_; }
  [[nodiscard]] uint8_t* end() const { return memory_ + 2 * size_; }

 private:
  size_t size_;
  uint8_t* memory_ = nullptr;
};

void copies(uint8_t* to, uint8_t* from, size_t bytes, const Page& target) {
  std::vector<uint8_t> wanted(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    wanted[i] = from[i] = static_cast<uint8_t>(1 + bytes + i * 3);
  }
  std::fill(target.begin(), target.end(), uint8_t{0xEE});
  copy_tiny(to, from, bytes);
  ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), to)) << bytes;
  const auto changed =
      std::count_if(target.begin(), target.end(), [](uint8_t b) { return b != 0xEE; });
  const auto own = std::count_if(wanted.begin(), wanted.end(), [](uint8_t b) { return b != 0xEE; });
  ASSERT_EQ(changed, own) << bytes;
}

TEST(Copy, EveryLengthAtBothEndsOfMemory) {
  const Page from;
  const Page to;
  for (size_t bytes = 0; bytes <= kTinyBytesMax; ++bytes) {
    copies(to.begin(), from.end() - bytes, bytes, to);
    copies(to.end() - bytes, from.begin(), bytes, to);
  }
}

TEST(Copy, EveryAlignment) {
  const Page from;
  const Page to;
  for (size_t bytes = 0; bytes <= kTinyBytesMax; ++bytes) {
    for (size_t at = 0; at < 64; ++at) {
      copies(to.begin() + at, from.begin() + (63 - at), bytes, to);
    }
  }
}

}  // namespace
}  // namespace rio::msg
