#include "pmd/net/bundle.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rio::pmd {
namespace {

using Bytes = std::array<uint8_t, 8>;

Bytes bytes_of(uint64_t word) {
  Bytes bytes;
  store_word(bytes.data(), word);
  return bytes;
}

TEST(Bundle, HeaderHasTheseBytes) {
  const BundleHeader header = {.items = 0x12, .epoch = 0x3456, .number = 0x789A};
  EXPECT_EQ(bytes_of(header.encode()), (Bytes{0xE5, 0xB1, 0x12, 0x00, 0x56, 0x34, 0x9A, 0x78}));
  const BundleHeader last = {.items = 255, .epoch = 0xFFFF, .number = 0xFFFF};
  EXPECT_EQ(bytes_of(last.encode()), (Bytes{0xE5, 0xB1, 0xFF, 0x00, 0xFF, 0xFF, 0xFF, 0xFF}));
}

TEST(Bundle, HeaderIsReadFromTheseBytes) {
  const Bytes bytes = {0xE5, 0xB1, 0x01, 0x00, 0x02, 0x80, 0x03, 0x90};
  BundleHeader header{};
  ASSERT_TRUE(BundleHeader::decode(load_word(bytes.data()), &header));
  EXPECT_EQ(header.items, 1);
  EXPECT_EQ(header.epoch, 0x8002);
  EXPECT_EQ(header.number, 0x9003);
}

TEST(Bundle, OtherHeadersAreRefused) {
  const uint64_t good = load_word(Bytes{0xE5, 0xB1, 0x01, 0, 0, 0, 0, 0}.data());
  BundleHeader header{};
  ASSERT_TRUE(BundleHeader::decode(good, &header));
  for (uint32_t bit = 0; bit < 16; ++bit) {  // of the mark
    EXPECT_FALSE(BundleHeader::decode(good ^ uint64_t{1} << bit, &header)) << bit;
  }
  for (uint32_t bit = 24; bit < 32; ++bit) {  // of the bits that are zero
    EXPECT_FALSE(BundleHeader::decode(good ^ uint64_t{1} << bit, &header)) << bit;
  }
  EXPECT_FALSE(BundleHeader::decode(good ^ uint64_t{1} << 16, &header)) << "no items";
  for (uint32_t bit = 32; bit < 64; ++bit) {
    EXPECT_TRUE(BundleHeader::decode(good ^ uint64_t{1} << bit, &header)) << bit;
  }
}

TEST(Bundle, ItemHasTheseBytes) {
  const ItemHeader part = {.length_bytes = 0x0FF0, .total_bytes = 0xFFFE, .offset_bytes = 0x1FE0};
  EXPECT_EQ(bytes_of(part.encode()), (Bytes{0xF0, 0x0F, 0x00, 0x00, 0xFE, 0xFF, 0xE0, 0x1F}));
  const ItemHeader whole = {.length_bytes = 60, .total_bytes = 0, .offset_bytes = 0};
  EXPECT_EQ(bytes_of(whole.encode()), (Bytes{0x3C, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Bundle, ItemsNeedRoom) {
  const Bytes bytes = {0x41, 0x00, 0x00, 0x00, 0x34, 0x12, 0x78, 0x56};
  ItemHeader item{};
  ASSERT_TRUE(ItemHeader::decode(load_word(bytes.data()), 72, &item));
  EXPECT_EQ(item.length_bytes, 0x41);
  EXPECT_EQ(item.total_bytes, 0x1234);
  EXPECT_EQ(item.offset_bytes, 0x5678);
  EXPECT_FALSE(ItemHeader::decode(load_word(bytes.data()), 71, &item))
      << "the padding needs room, too";
  EXPECT_FALSE(ItemHeader::decode(load_word(bytes.data()), 0, &item));
  EXPECT_FALSE(ItemHeader::decode(0, 4080, &item)) << "an item without bytes";
  for (uint32_t bit = 16; bit < 32; ++bit) {  // of the bits that are zero
    EXPECT_FALSE(ItemHeader::decode(8 | uint64_t{1} << bit, 4080, &item)) << bit;
  }
  EXPECT_TRUE(ItemHeader::decode(4080, 4080, &item));
  EXPECT_FALSE(ItemHeader::decode(4081, 4080, &item));
  EXPECT_FALSE(ItemHeader::decode(0xFFFF, 4080, &item));
}

TEST(Bundle, LengthsAreRoundedUpToEight) {
  EXPECT_EQ(padded_to_8(0), 0u);
  EXPECT_EQ(padded_to_8(1), 8u);
  EXPECT_EQ(padded_to_8(8), 8u);
  EXPECT_EQ(padded_to_8(65535), 65536u);
  EXPECT_EQ(item_bytes(14), 24u);
  EXPECT_EQ(kItemBytesMax, 4080u);
}

}  // namespace
}  // namespace rio::pmd
