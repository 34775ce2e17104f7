// The landing quirk: a last segment overwrites 256 bytes, whatever was there before.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "fpga/model/copy.hpp"

namespace {

using rio::model::land_full_256;

constexpr uint32_t kFull = 256;
constexpr uint32_t kBehind = 32;  // bytes behind the segment, which stay
using Memory = std::array<uint8_t, kFull + kBehind>;

/// The bytes of a message: none is zero.
[[nodiscard]] Memory payload() {
  Memory bytes{};
  for (uint32_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(1 + i % 255);
  }
  return bytes;
}

/// Memory after `len` bytes of payload() have landed in `before`.
[[nodiscard]] Memory expected(const Memory& before, uint32_t len) {
  Memory after = before;
  std::memset(after.data(), 0, kFull);
  std::memcpy(after.data(), payload().data(), len);
  return after;
}

/// Memory may have any address that is a multiple of 8.
[[nodiscard]] Memory landed(const Memory& before, uint32_t len) {
  struct {
    alignas(64) uint8_t skipped[8];
    Memory memory;
  } odd{};
  odd.memory = before;
  const Memory from = payload();
  land_full_256(odd.memory.data(), from.data(), len);
  return odd.memory;
}

TEST(Landing, OverwritesWhatAnEarlierMessageHasLeft) {
  Memory full;
  full.fill(0xA5);
  const Memory clean{};
  for (uint32_t len = 8; len <= kFull; len += 8) {
    EXPECT_EQ(landed(full, len), expected(full, len)) << len << " bytes";
    EXPECT_EQ(landed(clean, len), expected(clean, len)) << len << " bytes";
  }
}

TEST(Landing, FindsEachSingleByteThatIsNotZero) {
  for (uint32_t len = 8; len <= kFull; len += 8) {
    for (uint32_t at = 0; at < kFull + kBehind; ++at) {
      Memory before{};
      before[at] = 0x80;
      EXPECT_EQ(landed(before, len), expected(before, len)) << len << " bytes, dirt at " << at;
    }
  }
}

TEST(Landing, AShortMessageFollowsALongOneInTheSameBuffer) {
  alignas(64) Memory memory{};
  const Memory from = payload();
  for (const uint32_t len : {256u, 32u, 64u, 8u, 128u, 40u, 72u, 24u}) {
    const Memory before = memory;
    land_full_256(memory.data(), from.data(), len);
    EXPECT_EQ(memory, expected(before, len)) << len << " bytes";
  }
}

}  // namespace
