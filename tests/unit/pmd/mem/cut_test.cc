#include "pmd/mem/cut.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <random>
#include <vector>

namespace rio::pmd::mem {
namespace {

constexpr AlignRules kCard;  // [S0]: 8, 4096, 256, 4096

/// A number from 0 to below - 1.
uint32_t pick(std::mt19937* random, uint32_t below) {
  return static_cast<uint32_t>((*random)() % below);
}

Cut cut_of(uint32_t offset_bytes, uint64_t len_bytes, const AlignRules& rules = kCard) {
  Cut cut;
  EXPECT_EQ(make_cut(offset_bytes, len_bytes, rules, &cut), 0);
  return cut;
}

// head, middle messages, last middle, tail: computed by hand.
TEST(Cut, HasTheseValues) {
  EXPECT_EQ(cut_of(0, 4096), (Cut{0, 1, 4096, 0}));
  EXPECT_EQ(cut_of(0, 8192), (Cut{0, 2, 4096, 0}));
  EXPECT_EQ(cut_of(0, 256), (Cut{0, 1, 256, 0}));
  EXPECT_EQ(cut_of(0, 255), (Cut{0, 0, 0, 255}));
  EXPECT_EQ(cut_of(0, 1), (Cut{0, 0, 0, 1}));
  EXPECT_EQ(cut_of(0, 1000), (Cut{0, 1, 768, 232}));
  EXPECT_EQ(cut_of(0, 10000), (Cut{0, 3, 1792, 16}));
  EXPECT_EQ(cut_of(1, 4096),
            (Cut{0, 1, 4096, 0}));  // 4095 + 1 leave no middle, so there is one bounced message
  EXPECT_EQ(cut_of(8, 4096 + 4088), (Cut{4088, 1, 4096, 0}));
  EXPECT_EQ(cut_of(100, 12288), (Cut{3996, 2, 4096, 100}));
  EXPECT_EQ(cut_of(4095, 1 + 256), (Cut{1, 1, 256, 0}));
  EXPECT_EQ(cut_of(4095, 256), (Cut{0, 0, 0, 256}));
  EXPECT_EQ(cut_of(1, 4095 + 255), (Cut{0, 1, 4096, 254}));
  EXPECT_EQ(cut_of(1, 4095 + 256), (Cut{4095, 1, 256, 0}));
}

TEST(Cut, HasTheseValuesForABetterCard) {
  const AlignRules fine{8, 8, 8, 4096};
  EXPECT_EQ(cut_of(3, 1000, fine), (Cut{5, 1, 992, 3}));
  EXPECT_EQ(cut_of(8, 1000, fine), (Cut{0, 1, 1000, 0}));
  const AlignRules segment{8, 256, 256, 4096};
  EXPECT_EQ(cut_of(100, 5000, segment), (Cut{156, 2, 512, 236}));
  const AlignRules any{1, 1, 1, 4096};
  EXPECT_EQ(cut_of(3, 1001, any), (Cut{0, 1, 1000, 1}));
  const AlignRules small{8, 4096, 256, 256};
  EXPECT_EQ(cut_of(0, 1000, small), (Cut{0, 3, 256, 232}));
  EXPECT_EQ(cut_of(100, 8000, small), (Cut{0, 31, 256, 64}));
}

TEST(Cut, ABouncedCutHasTheFewestMessages) {
  Cut cut;
  ASSERT_EQ(make_bounced_cut(4096 * 3 + 5, kCard, &cut), 0);
  EXPECT_EQ(cut, (Cut{0, 3, 4096, 5}));
  ASSERT_EQ(make_bounced_cut(4095, kCard, &cut), 0);
  EXPECT_EQ(cut, (Cut{0, 0, 0, 4095}));
}

TEST(Cut, WireSizesArePadded) {
  const Cut cut = cut_of(100, 12288);
  EXPECT_EQ(cut_messages(cut), 4u);
  const CutMessage head = cut_message(cut, kCard, 0);
  EXPECT_EQ(head.offset_bytes, 0u);
  EXPECT_EQ(head.len_bytes, 3996u);
  EXPECT_EQ(head.wire_bytes, 4096u);
  const CutMessage middle = cut_message(cut, kCard, 2);
  EXPECT_EQ(middle.offset_bytes, 3996u + 4096u);
  EXPECT_EQ(middle.len_bytes, 4096u);
  EXPECT_EQ(middle.wire_bytes, 4096u);
  const CutMessage tail = cut_message(cut, kCard, 3);
  EXPECT_EQ(tail.offset_bytes, 12188u);
  EXPECT_EQ(tail.len_bytes, 100u);
  EXPECT_EQ(tail.wire_bytes, 256u);
}

/// Checks that every byte is covered once, in order, and that the card accepts the wire sizes.
void check_cover(const Cut& cut, uint64_t len_bytes, const AlignRules& rules) {
  ASSERT_EQ(check_cut(cut, len_bytes, rules), 0);
  uint64_t at = 0;
  for (uint64_t i = 0; i < cut_messages(cut); ++i) {
    const CutMessage part = cut_message(cut, rules, i);
    ASSERT_EQ(part.offset_bytes, at);
    ASSERT_GE(part.len_bytes, 1u);
    ASSERT_LE(part.len_bytes, part.wire_bytes);
    ASSERT_LE(part.wire_bytes, rules.message_max);
    ASSERT_EQ(part.wire_bytes % rules.dedicated_size, 0u);
    ASSERT_EQ(part.wire_bytes % 8, 0u);
    at += part.len_bytes;
  }
  ASSERT_EQ(at, len_bytes);
}

TEST(Cut, CoversEveryByteOnceForAllOffsets) {
  const uint32_t seed = rio::test::first_seed();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t offset = 0; offset < 4096; ++offset) {
    std::vector<uint64_t> lengths{1, 7, 8, 255, 256, 257, 4095, 4096, 4097, 8192, 12288};
    lengths.push_back(4096 - offset % 4096);
    lengths.push_back(4096 - offset + 256);
    for (int i = 0; i < 20; ++i) {
      lengths.push_back(1 + pick(&random, 12288));
    }
    lengths.push_back(1 + pick(&random, 1u << 20));
    for (const uint64_t len : lengths) {
      check_cover(cut_of(offset, len), len, kCard);
      const AlignRules other{8, 1u << pick(&random, 13), 1u << pick(&random, 9),
                             256 + 256 * pick(&random, 16)};
      check_cover(cut_of(offset, len, other), len, other);
      ASSERT_FALSE(HasFatalFailure()) << "offset " << offset << " length " << len;
    }
  }
}

TEST(Cut, CoversEveryByteOnceForAllLengths) {
  for (const uint32_t offset : {0u, 1u, 8u, 255u, 256u, 2048u, 3840u, 4088u, 4095u}) {
    for (uint64_t len = 1; len <= 3 * 4096; ++len) {
      check_cover(cut_of(offset, len), len, kCard);
      ASSERT_FALSE(HasFatalFailure()) << "offset " << offset << " length " << len;
    }
  }
}

TEST(Cut, RefusesBadArguments) {
  Cut cut{1, 2, 3, 4};
  EXPECT_EQ(make_cut(0, 0, kCard, &cut), -EINVAL);
  EXPECT_EQ(make_cut(4096, 1, kCard, &cut), -EINVAL);
  EXPECT_EQ(make_cut(0, (uint64_t{1} << 39) + 1, kCard, &cut), -EFBIG);
  EXPECT_EQ(make_cut(0, 1, AlignRules{3, 4096, 256, 4096}, &cut), -EINVAL);
  EXPECT_EQ(make_cut(0, 1, AlignRules{8, 8192, 256, 4096}, &cut), -EINVAL);
  EXPECT_EQ(make_cut(0, 1, AlignRules{8, 4096, 512, 4096}, &cut), -EINVAL);
  EXPECT_EQ(make_cut(0, 1, AlignRules{8, 4096, 0, 4096}, &cut), -EINVAL);
  EXPECT_EQ(make_cut(0, 1, AlignRules{8, 4096, 256, 4000}, &cut), -EINVAL);
  EXPECT_EQ(make_cut(0, 1, AlignRules{8, 4096, 256, 8192}, &cut), -EINVAL);
  EXPECT_EQ(cut, (Cut{1, 2, 3, 4}));  // outputs are set on success only
  EXPECT_EQ(make_cut(0, uint64_t{1} << 39, AlignRules{8, 4096, 256, 256}, &cut), 0);
  EXPECT_EQ(cut.middle_messages, 1u << 31);
}

TEST(Cut, AQuirkForcesSizesOf256) {
  EXPECT_EQ(align_rules(8, 8, 8, true).dedicated_size, 256u);
  EXPECT_EQ(align_rules(8, 8, 8, false).dedicated_size, 8u);
}

TEST(CutWire, HasTheseBytes) {
  std::array<uint8_t, kCutWireBytes> bytes;
  encode_cut(Cut{3996, 0x01020304, 4096, 100}, bytes);
  EXPECT_EQ(bytes, (std::array<uint8_t, 12>{1, 0, 0x9C, 0x0F, 0x00, 0x10, 0x64, 0x00, 0x04, 0x03,
                                            0x02, 0x01}));
  const std::array<uint8_t, 12> peer{1, 0, 0x9C, 0x0F, 0x00, 0x10, 0x64, 0x00, 0x02, 0, 0, 0};
  Cut cut;
  ASSERT_EQ(decode_cut(peer, 12288, kCard, &cut), 0);
  EXPECT_EQ(cut, (Cut{3996, 2, 4096, 100}));
}

TEST(CutWire, RefusesMalformedCuts) {
  const std::array<uint8_t, 12> good{1, 0, 0x9C, 0x0F, 0x00, 0x10, 0x64, 0x00, 0x02, 0, 0, 0};
  Cut cut;
  const auto decode = [&cut](std::vector<uint8_t> bytes, uint64_t len = 12288) {
    return decode_cut(bytes, len, kCard, &cut);
  };
  const auto with = [&good](size_t at, uint8_t value) {
    std::vector<uint8_t> bytes(good.begin(), good.end());
    bytes[at] = value;
    return bytes;
  };
  EXPECT_EQ(decode({good.begin(), good.end()}), 0);
  EXPECT_EQ(decode({}), -EPROTO);
  EXPECT_EQ(decode({good.begin(), good.end() - 1}), -EPROTO);
  EXPECT_EQ(decode(with(0, 2)), -EPROTO);     // version
  EXPECT_EQ(decode(with(1, 1)), -EPROTO);     // reserved
  EXPECT_EQ(decode(with(3, 0x10)), -EPROTO);  // head of a message or more
  EXPECT_EQ(decode(with(4, 4)), -EPROTO);     // middle above the longest message
  EXPECT_EQ(decode(with(5, 0)), -EPROTO);     // messages without bytes
  EXPECT_EQ(decode(with(8, 0)), -EPROTO);     // bytes without messages
  EXPECT_EQ(decode(with(8, 3)), -EPROTO);     // longer than allowed
  EXPECT_EQ(decode(with(11, 0xFF)), -EPROTO);
  EXPECT_EQ(decode({good.begin(), good.end()}, 12287), -EPROTO);
  EXPECT_EQ(decode({good.begin(), good.end()}, 12289), 0);  // shorter than allowed
  EXPECT_EQ(decode({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0), -EPROTO);
  EXPECT_EQ(decode({1, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0}, 4), -EPROTO);  // not doublewords
}

TEST(CutWire, RandomBytesNeverPassWrong) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int passed = 0;
  for (int i = 0; i < 200000; ++i) {
    const uint64_t len = 1 + pick(&random, 20000);
    std::array<uint8_t, kCutWireBytes> bytes;
    encode_cut(cut_of(pick(&random, 4096), len), bytes);
    for (uint32_t n = pick(&random, 3); n > 0; --n) {
      bytes[pick(&random, bytes.size())] = static_cast<uint8_t>(pick(&random, 256));
    }
    Cut cut;
    if (decode_cut(bytes, len, kCard, &cut) == 0) {
      ++passed;
      ASSERT_LE(cut_bytes(cut, kCard), len);
      std::array<uint8_t, kCutWireBytes> again;
      encode_cut(cut, again);
      ASSERT_EQ(again, bytes);
    }
  }
  EXPECT_GT(passed, 50000);  // those that were not changed
}

}  // namespace
}  // namespace rio::pmd::mem
