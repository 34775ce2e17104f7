// The bytes that tests send: written and checked by words, with the same result as byte by byte.
#include "pmd/selftest/pattern.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rio::selftest {
namespace {

TEST(Pattern, EachLengthAtEachAlignment) {
  const Pattern pattern(7, 3);
  for (uint32_t offset = 0; offset < 8; ++offset) {
    for (uint32_t len = 0; len <= 33; ++len) {
      std::vector<uint8_t> bytes(64, 0xEE);
      pattern.fill(bytes.data() + offset, len);
      for (uint32_t at = 0; at < len; ++at) {
        EXPECT_EQ(bytes[offset + at], pattern.byte(at)) << len;
      }
      EXPECT_EQ(bytes[offset + len], 0xEE) << "no byte behind it is written";
      EXPECT_EQ(pattern.first_wrong(bytes.data() + offset, len), len);
    }
  }
}

TEST(Pattern, EachWrongByteIsFound) {
  constexpr uint32_t kLen = 29;
  const Pattern pattern(1, 1);
  std::vector<uint8_t> bytes(kLen);
  pattern.fill(bytes.data(), kLen);
  for (uint32_t at = 0; at < kLen; ++at) {
    bytes[at] ^= 0x10;
    EXPECT_EQ(pattern.first_wrong(bytes.data(), kLen), at);
    bytes[at] ^= 0x10;
  }
}

TEST(Pattern, SeedAndNumberMakeOtherBytes) {
  std::vector<uint8_t> bytes(8);
  Pattern(1, 1).fill(bytes.data(), 8);
  EXPECT_LT(Pattern(1, 2).first_wrong(bytes.data(), 8), 8u);
  EXPECT_LT(Pattern(2, 1).first_wrong(bytes.data(), 8), 8u);
}

}  // namespace
}  // namespace rio::selftest
