// Names of several cards: where they divide, and which are refused.
#include "fpga/name/rails.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rio::name {
namespace {

struct Parsed {
  std::vector<std::string> names;
  std::vector<CardName> cards;
  std::string error;
  int rc;
};

Parsed parsed(const std::string& text) {
  Parsed result;
  result.rc = parse_cards(text, &result.names, &result.cards, &result.error);
  return result;
}

TEST(Rails, OneCardIsOneName) {
  const Parsed one = parsed("shm:lab,id=3");
  EXPECT_EQ(one.rc, 0) << one.error;
  EXPECT_EQ(one.names, std::vector<std::string>{"shm:lab,id=3"});
  ASSERT_EQ(one.cards.size(), 1u);
  EXPECT_EQ(one.cards[0].id, 3u);
}

TEST(Rails, APlusDividesNamesWithKeys) {
  const Parsed two = parsed("udp:a,port=7000+0000:04:00.0,reset=0+04:00.1");
  EXPECT_EQ(two.rc, 0) << two.error;
  EXPECT_EQ(two.names,
            (std::vector<std::string>{"udp:a,port=7000", "0000:04:00.0,reset=0", "04:00.1"}));
  ASSERT_EQ(two.cards.size(), 3u);
  EXPECT_EQ(std::get<Pci>(two.cards[2].kind).address, "0000:04:00.1");
}

TEST(Rails, APlusInAPathDividesNothing) {
  const Parsed paths = parsed("sim:/tmp/c++/a+b+sim:/tmp/1+2");
  EXPECT_EQ(paths.rc, 0) << paths.error;
  EXPECT_EQ(paths.names, (std::vector<std::string>{"sim:/tmp/c++/a+b", "sim:/tmp/1+2"}));
}

TEST(Rails, TheSameCardTwiceIsRefused) {
  for (const char* const text :
       {"0000:03:00.0+emu:x+03:00.0,reset=0", "emu:x+emu:x,qps=2", "sim:/tmp/a+sim:/tmp/a",
        "emu:fabric,topology=f,at=a+emu:fabric,topology=f,at=a"}) {
    const Parsed twice = parsed(text);
    EXPECT_EQ(twice.rc, -EINVAL) << text;
    EXPECT_NE(twice.error.find("is also card 1: name each card once"), std::string::npos)
        << twice.error;
    EXPECT_TRUE(twice.names.empty());
  }
}

TEST(Rails, CardsThatMayDifferArePermitted) {
  for (const char* const text :
       {"shm:lab+shm:lab", "emu:loop+emu:loop", "udp:a+udp:b", "emu:x+emu:y",
        "emu:fabric,topology=f,at=a+emu:fabric,topology=f,at=b"}) {
    EXPECT_EQ(parsed(text).rc, 0) << parsed(text).error;
  }
}

TEST(Rails, NineCardsAreTooMany) {
  std::string text = "emu:a0";
  for (int i = 1; i < 8; ++i) {
    text += "+emu:a" + std::to_string(i);
  }
  EXPECT_EQ(parsed(text).rc, 0);
  const Parsed nine = parsed(text + "+emu:a8");
  EXPECT_EQ(nine.rc, -EINVAL);
  EXPECT_EQ(nine.error, "9 cards: a name has at most 8, joined by '+'");
}

TEST(Rails, AWrongNameIsNamed) {
  EXPECT_EQ(parsed("emu:x+").rc, -EINVAL);
  EXPECT_EQ(parsed("+emu:x").rc, -EINVAL);
  const Parsed wrong = parsed("emu:x+shm:lab,speed=3");
  EXPECT_EQ(wrong.rc, -EINVAL);
  EXPECT_NE(wrong.error.find("'speed'"), std::string::npos) << wrong.error;
}

}  // namespace
}  // namespace rio::name
