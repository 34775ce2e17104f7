// Numbers that users write, in the environment and in options.
#include "base/number.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

namespace rio::test {
namespace {

[[nodiscard]] std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  return base::read_number(text, 0, UINT64_MAX, &value) ? std::optional(value) : std::nullopt;
}

[[nodiscard]] std::optional<uint64_t> bytes(std::string_view text) {
  uint64_t value = 0;
  return base::read_bytes(text, 0, UINT64_MAX, &value) ? std::optional(value) : std::nullopt;
}

TEST(Number, DecimalAndHexadecimal) {
  EXPECT_EQ(number("0"), 0u);
  EXPECT_EQ(number("007"), 7u);
  EXPECT_EQ(number("0x10"), 16u);
  EXPECT_EQ(number("0XfF"), 255u);
  EXPECT_EQ(number("18446744073709551615"), UINT64_MAX);
}

TEST(Number, ABinarySuffixOfBytes) {
  EXPECT_EQ(bytes("64K"), 65536u);
  EXPECT_EQ(bytes("64k"), 65536u);
  EXPECT_EQ(bytes("64Ki"), 65536u);
  EXPECT_EQ(bytes("64KiB"), 65536u);
  EXPECT_EQ(bytes("64kib"), 65536u);
  EXPECT_EQ(bytes("3M"), 3u << 20);
  EXPECT_EQ(bytes("1G"), 1u << 30);
  EXPECT_EQ(bytes("2TiB"), uint64_t{2} << 40);
  EXPECT_EQ(bytes("0K"), 0u);
  EXPECT_EQ(bytes("65536"), 65536u);
  EXPECT_EQ(bytes("0x10000"), 65536u);
  EXPECT_EQ(bytes("16777215T"), uint64_t{16777215} << 40);
}

TEST(Number, NoOtherTextIsANumber) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "+1",
                           "1e6",
                           "1.5",
                           "abc",
                           "0x",
                           "x1",
                           "1 ",
                           " 1",
                           "1\n",
                           "64K",
                           "0b11",
                           "18446744073709551616",
                           "0x10000000000000000",
                           "1,000",
                           "--1",
                           "0x-1",
                           "1_000"}) {
    EXPECT_EQ(number(text), std::nullopt) << text;
  }
  for (const char* text : {"",       "K",    "-1",   "-1K",   "1e6",       "1e6K",
                           "1.5M",   "64KB", "64kB", "64 K",  "64KK",      "64Kx",
                           "64KiBB", "64i",  "64B",  "0x10K", "16777216T", "18446744073709551616",
                           "64P",    "K64",  "64K "}) {
    EXPECT_EQ(bytes(text), std::nullopt) << text;
  }
}

TEST(Number, OutOfRangeLeavesTheOldValue) {
  uint64_t value = 7;
  EXPECT_FALSE(base::read_number("65", 1, 64, &value));
  EXPECT_FALSE(base::read_number("0", 1, 64, &value));
  EXPECT_FALSE(base::read_bytes("65K", 0, 65536, &value));
  EXPECT_FALSE(base::read_bytes("abc", 0, 65536, &value));
  EXPECT_EQ(value, 7u);
  EXPECT_TRUE(base::read_number("64", 1, 64, &value));
  EXPECT_EQ(value, 64u);
}

TEST(Number, NarrowerTypes) {
  uint16_t port = 7;
  EXPECT_TRUE(base::read_number("0xFFFF", &port));
  EXPECT_EQ(port, UINT16_MAX);
  EXPECT_FALSE(base::read_number("65536", &port));
  EXPECT_FALSE(base::read_number("0", 1, 9, &port));
  EXPECT_FALSE(base::read_number("", &port));
  EXPECT_EQ(port, UINT16_MAX);
  EXPECT_TRUE(base::read_number("9", 1, 9, &port));
  EXPECT_EQ(port, 9u);
}

TEST(Number, DecimalDigitsAlone) {
  unsigned value = 7;
  for (const char* text : {"", "0x1", "0X1", "x", "-1", "32"}) {
    EXPECT_FALSE(base::read_decimal(text, 0, 31, &value)) << text;
  }
  EXPECT_EQ(value, 7u);
  EXPECT_TRUE(base::read_decimal("31", 0, 31, &value));
  EXPECT_EQ(value, 31u);
}

TEST(Number, ListsOfRanges) {
  std::vector<uint32_t> list = {7};
  std::string problem;
  const auto reads = [&](const char* text) {
    const auto read = [](std::string_view one, uint32_t* value) {
      return base::read_number(one, 0, UINT32_MAX, value);
    };
    return base::read_ranges(text, ':', "thing", read, &list, &problem);
  };
  for (const auto& [text, why] :
       std::vector<std::pair<const char*, const char*>>{{"", "a number is missing"},
                                                        {"5:", "a number is missing"},
                                                        {"1-", "a number is missing"},
                                                        {"5-4", "the range 5-4 falls"},
                                                        {"1-2-3", "\"2-3\" is not a thing"},
                                                        {"1,2", "\"1,2\" is not a thing"},
                                                        {"0-0xffffffff", "it is too long"},
                                                        {"0-65535:1", "it is too long"}}) {
    EXPECT_FALSE(reads(text)) << text;
    EXPECT_EQ(problem, why);
  }
  EXPECT_EQ(list, std::vector<uint32_t>{7});
  EXPECT_TRUE(reads("9:0x10-0x12:9:3-3:4294967295"));
  EXPECT_EQ(list, (std::vector<uint32_t>{9, 16, 17, 18, 9, 3, UINT32_MAX}));
  EXPECT_TRUE(reads("0-65535"));
  EXPECT_EQ(list.size(), 65536u);
}

TEST(Number, HexadecimalDigitsAlone) {
  uint64_t value = 7;
  for (const char* text : {"", "0x1", "g", "-1", "+1", " 1", "1 ", "20", "10000000000000000"}) {
    EXPECT_FALSE(base::read_hex(text, 0x1f, &value)) << text;
  }
  EXPECT_EQ(value, 7u);
  EXPECT_TRUE(base::read_hex("1F", 0x1f, &value));
  EXPECT_EQ(value, 0x1fu);
  EXPECT_TRUE(base::read_hex("ffffffffffffffff", UINT64_MAX, &value));
  EXPECT_EQ(value, UINT64_MAX);
}

TEST(Number, Fractions) {
  double value = 7;
  for (const char* text : {"", " ", "-0.1", "1.1", "+0.5", "nan", "inf", "0.5 ", "0.5x", "1e9"}) {
    EXPECT_FALSE(base::read_fraction(text, 0, 1, &value)) << text;
  }
  EXPECT_EQ(value, 7);
  EXPECT_TRUE(base::read_fraction("0.25", 0, 1, &value));
  EXPECT_EQ(value, 0.25);
  EXPECT_TRUE(base::read_fraction("1e-6", 0, 1, &value));
  EXPECT_EQ(value, 1e-6);
  EXPECT_TRUE(base::read_fraction("1", 0, 1, &value));
  EXPECT_EQ(value, 1);
}

TEST(Number, ASettingThatIsWrongIsNamed) {
  uint64_t value = 7;
  std::string error;
  EXPECT_EQ(base::read_setting("X", nullptr, {}, &value, &error), 0);
  EXPECT_EQ(base::read_setting("X", "", {}, &value, &error), 0);
  EXPECT_EQ(value, 7u);
  EXPECT_EQ(base::read_setting("X_BYTES", "1e6\n", {.most = 100, .is_bytes = true}, &value, &error),
            -EINVAL);
  EXPECT_EQ(
      error,
      "X_BYTES is \"1e6?\"; it must be a number of bytes from 0 to 100, such as 65536 or 64K");
  EXPECT_EQ(base::read_setting("X", "64K", {.least = 1, .most = 9}, &value, &error), -EINVAL);
  EXPECT_EQ(error, "X is \"64K\"; it must be a number from 1 to 9");
  EXPECT_EQ(base::read_setting("X", "-1", {.is_bytes = true}, &value, &error), -EINVAL);
  EXPECT_EQ(error, "X is \"-1\"; it must be a number of bytes, such as 65536 or 64K");
  EXPECT_EQ(value, 7u);
  EXPECT_EQ(base::read_setting("X", "64K", {.is_bytes = true}, &value, &error), 0);
  EXPECT_EQ(value, 65536u);
}

TEST(Number, ForeignTextIsMadePrintable) {
  EXPECT_EQ(base::printable("a\x1b[1m\n\xC3\xA9z"), "a?[1m???z");
  EXPECT_EQ(base::printable(std::string(81, 'x')), std::string(80, 'x'));
}

}  // namespace
}  // namespace rio::test
