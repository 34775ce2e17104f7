#include "fpga/wire/udp/key.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace rio::wire::udp {
namespace {

const std::string kText = "0123456789abcdef";

[[nodiscard]] Key key_of(const std::string& text) {
  Key key;
  std::string error;
  EXPECT_EQ(Key::from_text(text, &key, &error), 0) << error;
  return key;
}

TEST(UdpKey, ShortOneIsRefused) {
  Key key;
  std::string error;
  EXPECT_EQ(Key::from_text(kText.substr(1), &key, &error), -EINVAL);
  EXPECT_NE(error.find("at least 16"), std::string::npos) << error;
  EXPECT_FALSE(key.set());
  EXPECT_EQ(Key::from_text("", &key, &error), 0);
  EXPECT_FALSE(key.set());
}

TEST(UdpKey, EachDirectionAndConnectionHasItsOwn) {
  const Key key = key_of(kText);
  const Random a{1};
  const Random b{2};
  EXPECT_EQ(key.derive(a, b), key.derive(a, b));
  EXPECT_NE(key.derive(a, b), key.derive(b, a));
  EXPECT_NE(key.derive(a, b), key.derive(a, Random{3}));
  EXPECT_NE(key.derive(a, b), key_of(kText + "x").derive(a, b));
}

TEST(UdpKey, ASealedDatagramOpensOnlyUnchanged) {
  const KeyBytes key{7};
  const std::vector<uint8_t> plain = {'c', 'l', 'e', 'a', 'r', 'h', 'i', 'd', 'd', 'e', 'n'};
  std::vector<uint8_t> bytes = plain;
  bytes.resize(plain.size() + kTagBytes);
  ASSERT_EQ(seal(key, 5, bytes, plain.size(), 5), bytes.size());
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 5, bytes.begin()));
  EXPECT_NE(std::memcmp(bytes.data() + 5, plain.data() + 5, 6), 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> spoilt = bytes;
    spoilt[i] ^= 1;
    EXPECT_EQ(open(key, 5, spoilt, 5), 0u) << i;
  }
  std::vector<uint8_t> other = bytes;
  EXPECT_EQ(open(key, 6, other, 5), 0u);
  other = bytes;
  EXPECT_EQ(open(KeyBytes{8}, 5, other, 5), 0u);
  ASSERT_EQ(open(key, 5, bytes, 5), plain.size());
  bytes.resize(plain.size());
  EXPECT_EQ(bytes, plain);
}

TEST(UdpKey, GreetingsAreSealedWithANonceOfTheirOwn) {
  const Key key = key_of(kText);
  std::vector<uint8_t> bytes(40 + kTagBytes, 9);
  ASSERT_EQ(key.seal(bytes, 40, 32, 8), bytes.size());
  std::vector<uint8_t> spoilt = bytes;
  spoilt[8] ^= 1;
  EXPECT_EQ(key.open(spoilt, 32, 8), 0u);
  EXPECT_EQ(key.open(bytes, 32, 8), 40u);
  EXPECT_EQ(bytes[39], 9);
}

TEST(UdpReplay, EachNumberIsTakenOnce) {
  Replay replay;
  EXPECT_TRUE(replay.take(1));
  EXPECT_FALSE(replay.take(1));
  EXPECT_TRUE(replay.take(500));
  EXPECT_TRUE(replay.take(2));
  EXPECT_FALSE(replay.take(2));
  EXPECT_FALSE(replay.take(500));
}

TEST(UdpReplay, TooOldNumbersAreNotTaken) {
  Replay replay;
  EXPECT_TRUE(replay.take(1 << 20));
  EXPECT_FALSE(replay.take((1 << 20) - 1024));
  EXPECT_TRUE(replay.take((1 << 20) - 1023));
  EXPECT_FALSE(replay.take((1 << 20) - 1023));
  EXPECT_TRUE(replay.take((1 << 20) + 1));
  EXPECT_FALSE(replay.take((1 << 20) - 1023));
}

TEST(UdpReplay, FarJumpsForgetWhatIsOld) {
  Replay replay;
  for (uint64_t number = 1; number < 2000; ++number) {
    EXPECT_TRUE(replay.take(number));
  }
  EXPECT_TRUE(replay.take(100'000));
  for (uint64_t number = 100'000 - 1000; number < 100'000; ++number) {
    EXPECT_TRUE(replay.take(number)) << number;
  }
}

}  // namespace
}  // namespace rio::wire::udp
