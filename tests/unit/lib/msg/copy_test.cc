// Copies of each length at the very beginning and the very end of a page: no byte beyond the page
// is touched. Tiny copies, and copies of any length from and to memory of a card.
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

template <class Copy>
void copies(uint8_t* to, uint8_t* from, size_t bytes, const Page& target, const Copy& copy) {
  std::vector<uint8_t> wanted(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    wanted[i] = from[i] = static_cast<uint8_t>(1 + bytes + i * 3);
  }
  std::fill(target.begin(), target.end(), uint8_t{0xEE});
  copy(to, from, bytes);
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
    copies(to.begin(), from.end() - bytes, bytes, to, copy_tiny);
    copies(to.end() - bytes, from.begin(), bytes, to, copy_tiny);
  }
}

TEST(Copy, EveryAlignment) {
  const Page from;
  const Page to;
  for (size_t bytes = 0; bytes <= kTinyBytesMax; ++bytes) {
    for (size_t at = 0; at < 64; ++at) {
      copies(to.begin() + at, from.begin() + (63 - at), bytes, to, copy_tiny);
    }
  }
}

TEST(Copy, LongOnesFromAndToACard) {
  constexpr size_t kSizes[] = {65, 66, 95, 96, 97, 127, 128, 129, 500, 1001, 2048, 4000};
  const Page from;
  const Page to;
  const auto to_card = [](uint8_t* at, const uint8_t* bytes, size_t count) {
    copy_any(at, bytes, count, at);
  };
  const auto from_card = [](uint8_t* at, const uint8_t* bytes, size_t count) {
    copy_any(at, bytes, count, bytes);
  };
  const auto check = [&](const auto& copy) {
    for (const size_t bytes : kSizes) {
      for (size_t at = 0; at < 32; ++at) {
        copies(to.begin() + at, from.end() - bytes, bytes, to, copy);
        copies(to.end() - bytes, from.begin() + at, bytes, to, copy);
      }
    }
  };
  check(to_card);
  check(from_card);
}

}  // namespace
}  // namespace rio::msg
