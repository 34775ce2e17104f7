// Rates, delays and queues of links, computed by hand.
#include "fpga/sim/link_set.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>

namespace rio::sim {
namespace {

constexpr LinkClass kDefault;

TEST(LinkSet, APacketWaitsForThoseBefore) {
  LinkSet links(3, {&kDefault, 1});
  EXPECT_EQ(links.send(1, 1000, 0), 1108u);
  EXPECT_EQ(links.send(1, 1000, 0), 1116u);
  EXPECT_EQ(links.send(1, 1003, 0), 1124u);
  EXPECT_EQ(links.busy_until_ns(1), 1024u);
  EXPECT_EQ(links.longest_wait_ns(1), 13u);
  EXPECT_EQ(links.longest_queue(1, 0), 2u);
  EXPECT_EQ(links.send(1, 1024, 0), 1132u);  // the link is idle again
  EXPECT_EQ(links.longest_wait_ns(1), 13u);
  EXPECT_EQ(links.sent(1), 4u);
  EXPECT_EQ(links.send(2, 1000, 0), 1108u);  // another link
  EXPECT_EQ(links.busiest(), 1u);
  EXPECT_EQ(links.longest_queue(2, 0), 0u);
  EXPECT_EQ(links.sent(0), 0u);
}

TEST(LinkSet, ClassesHaveRatesAndDelaysOfTheirOwn) {
  const LinkClass classes[] = {
      {.serialisation_ns = 8, .hop_ns = 100},
      {.serialisation_ns = 0, .ps_per_byte = 800, .hop_ns = 0},  // 1.25 GB/s
      {.serialisation_ns = 20, .ps_per_byte = 1, .hop_ns = 5},
  };
  LinkSet links(3, classes);
  links.set_class(1, 1);
  links.set_class(2, 2);
  EXPECT_EQ(links.send(0, 0, 4096), 108u);
  EXPECT_EQ(links.send(1, 0, 256), 205u);  // 204.8, rounded up
  EXPECT_EQ(links.send(1, 0, 0), 205u);
  EXPECT_EQ(links.send(1, 0, 10), 213u);
  EXPECT_EQ(links.send(2, 0, 1), 26u);
  EXPECT_EQ(links.class_of(2).hop_ns, 5u);
}

TEST(LinkSet, TimesBeyond32Bits) {
  const LinkClass slow{.serialisation_ns = UINT32_MAX, .ps_per_byte = UINT32_MAX, .hop_ns = 7};
  LinkSet links(1, {&slow, 1});
  constexpr uint64_t kBytesNs = (uint64_t{UINT32_MAX} * 1000 + 999) / 1000;
  constexpr uint64_t kStart = uint64_t{1} << 50;
  EXPECT_EQ(links.send(0, kStart, 1000), kStart + UINT32_MAX + kBytesNs + 7);
  EXPECT_EQ(links.send(0, kStart, 1000), kStart + 2 * (UINT32_MAX + kBytesNs) + 7);
  EXPECT_EQ(links.longest_wait_ns(0), UINT32_MAX);
}

TEST(LinkSet, TroublesEndOneByOne) {
  LinkSet links(2, {&kDefault, 1});
  const uint64_t arrival = links.send(0, 5, 0);
  links.begin_trouble(0, LinkTrouble::kCut);
  links.begin_trouble(0, LinkTrouble::kReceiverDown);
  links.end_trouble(0, LinkTrouble::kCut);
  EXPECT_TRUE(links.is_down(0));
  EXPECT_FALSE(links.is_down(1));
  links.end_trouble(0, LinkTrouble::kReceiverDown);
  links.end_trouble(0, LinkTrouble::kSenderDown);
  EXPECT_FALSE(links.is_down(0));
  EXPECT_EQ(links.send(0, 5, 0), arrival + 8) << "the rest of a link stays as it was";
}

TEST(LinkSet, MistakesAreNamed) {
  std::string error;
  EXPECT_EQ(LinkSet::check({}, &error), -EINVAL);
  EXPECT_NE(error.find("give 1 to 32"), std::string::npos) << error;
  for (const double rate : {-0.1, 1.5, std::nan("")}) {
    const LinkClass classes[] = {{}, {.loss_rate = rate}};
    EXPECT_EQ(LinkSet::check(classes, &error), -EINVAL);
    EXPECT_NE(error.find("class 1"), std::string::npos) << error;
  }
  const LinkClass good[] = {{}, {.loss_rate = 1.0}};
  EXPECT_EQ(LinkSet::check(good, &error), 0);
}

}  // namespace
}  // namespace rio::sim
