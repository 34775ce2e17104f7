#include "lib/rail/rail_chooser.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace rio::rail {
namespace {

constexpr RailSet kTwo = 0b11;
constexpr RailSet kFour = 0b1111;

RailView all_of(RailSet rails) {
  return {rails, 0, rails};
}

/// The rails of `count` messages of which each leaves its rail idle.
std::vector<int> rails_of(RailChooser& chooser, const RailView& view, const RailLoads& loads,
                          int count) {
  std::vector<int> rails;
  for (int i = 0; i < count; ++i) {
    rails.push_back(chooser.small_rail(view, loads, 64));
  }
  return rails;
}

TEST(RailSet, FindsRailsByPlaceAndInTurn) {
  EXPECT_EQ(first_from(0b10010, 0), 1u);
  EXPECT_EQ(first_from(0b10010, 2), 4u);
  EXPECT_EQ(first_from(0b10010, 5), 1u);
  EXPECT_EQ(rail_at(0b10010, 0), 1u);
  EXPECT_EQ(rail_at(0b10010, 3), 4u);
}

TEST(RailChooser, StaticKeepsAPeersRailAndSpreadsPeers) {
  const RailLoads loads;
  for (uint32_t peer = 0; peer < 8; ++peer) {
    RailChooser chooser(RailPolicy::kStatic, 0b10110, peer);
    const std::vector<int> places{1, 2, 4};
    EXPECT_EQ(rails_of(chooser, all_of(0b10110), loads, 3), std::vector<int>(3, places[peer % 3]));
  }
}

TEST(RailChooser, StaticWaitsForItsRailAndLeavesItOnlyIfItIsNotUp) {
  const RailLoads loads;
  RailChooser chooser(RailPolicy::kStatic, kFour, 2);
  EXPECT_EQ(chooser.small_rail({kFour, 0, 0b1011}, loads, 64), -EAGAIN);
  EXPECT_EQ(chooser.small_rail({0b1011, 0, kFour}, loads, 64), 3);
  EXPECT_EQ(chooser.small_rail({0b1011, 0, 0b0111}, loads, 64), -EAGAIN);
  EXPECT_EQ(chooser.small_rail(all_of(kFour), loads, 64), 2);
}

TEST(RailChooser, UnidirectionalSendsOnSomeAndReceivesOnTheOthers) {
  RailLoads loads;
  for (const bool lower : {true, false}) {
    RailChooser chooser(RailPolicy::kUnidirectional, kFour, 0, lower);
    const RailSet sends = lower ? 0b0011 : 0b1100;
    for (const int rail : rails_of(chooser, all_of(kFour), loads, 8)) {
      EXPECT_TRUE(has(sends, static_cast<uint32_t>(rail)));
    }
    EXPECT_EQ(chooser.stripe_rails(all_of(kFour), loads, 1000), kFour & ~sends);
    // A rail that is up counts more than its direction, and its direction more than room.
    EXPECT_TRUE(has(kFour & ~sends, static_cast<uint32_t>(chooser.small_rail(
                                        {kFour & ~sends, sends, kFour}, loads, 64))));
    EXPECT_EQ(chooser.small_rail({kFour, 0, kFour & ~sends}, loads, 64), -EAGAIN);
  }
  RailChooser three(RailPolicy::kUnidirectional, 0b111, 0);
  EXPECT_EQ(three.stripe_rails(all_of(0b111), loads, 1000), 0b100u);
  RailChooser one(RailPolicy::kUnidirectional, 0b100, 0);
  EXPECT_EQ(one.small_rail(all_of(0b100), loads, 64), 2);
  EXPECT_EQ(one.stripe_rails(all_of(0b100), loads, 1000), 0b100u);
}

TEST(RailChooser, DynamicTakesAFreeRailElseTheBusyOnesInTurn) {
  RailLoads loads;
  RailChooser chooser(RailPolicy::kDynamic, kFour, 0);
  loads.posted(0, 1);
  loads.posted(1, 1000);
  loads.posted(3, 1);
  EXPECT_EQ(rails_of(chooser, all_of(kFour), loads, 3), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(chooser.stripe_rails(all_of(kFour), loads, 1000), 0b100u);
  loads.posted(2, 1);
  EXPECT_EQ(rails_of(chooser, all_of(kFour), loads, 5), (std::vector<int>{3, 0, 1, 2, 3}));
  EXPECT_EQ(chooser.stripe_rails(all_of(kFour), loads, 1000), kFour);
  EXPECT_EQ(chooser.small_rail({kFour, 0, 0b0010}, loads, 64), 1);
}

TEST(RailChooser, WeightedTakesTheRailThatFinishesFirst) {
  RailLoads loads;
  loads.set_distance(1, 20);
  RailChooser chooser(RailPolicy::kWeighted, kTwo, 1);
  EXPECT_EQ(chooser.small_rail(all_of(kTwo), loads, 4096), 0);  // near
  loads.posted(0, 12000);
  EXPECT_EQ(chooser.small_rail(all_of(kTwo), loads, 4096), 0) << "not twice as fast";
  loads.posted(0, 400);
  EXPECT_EQ(chooser.small_rail(all_of(kTwo), loads, 4096), 1);
  EXPECT_EQ(chooser.small_rail({kTwo, 0, 0b01}, loads, 4096), 0);
  EXPECT_EQ(chooser.small_rail({0b01, 0b10, kTwo}, loads, 4096), 0);
}

TEST(RailChooser, WeightedSpreadsPeersOverEqualRails) {
  const RailLoads loads;
  for (uint32_t peer = 0; peer < 8; ++peer) {
    RailChooser chooser(RailPolicy::kWeighted, kFour, peer);
    EXPECT_EQ(rails_of(chooser, all_of(kFour), loads, 2),
              std::vector<int>(2, static_cast<int>(peer % 4)));
  }
}

TEST(RailChooser, MessagesLeaveARailThatIsBusyOrNotUp) {
  const RailLoads loads;
  RailChooser chooser(RailPolicy::kWeighted, kTwo, 0);
  ASSERT_EQ(chooser.small_rail(all_of(kTwo), loads, 64), 0);
  EXPECT_EQ(chooser.small_rail({kTwo, 0, 0b10}, loads, 64), 1);
  EXPECT_EQ(chooser.small_rail(all_of(kTwo), loads, 64), 1) << "nothing draws them back";
  EXPECT_EQ(chooser.small_rail({0b01, 0b10, kTwo}, loads, 64), 0);
}

TEST(RailChooser, ALastResortIsUsedOnlyIfNothingIsUp) {
  const RailLoads loads;
  for (const RailPolicy policy : {RailPolicy::kStatic, RailPolicy::kUnidirectional,
                                  RailPolicy::kDynamic, RailPolicy::kWeighted}) {
    RailChooser chooser(policy, kTwo, 0);
    EXPECT_EQ(chooser.small_rail({0b10, 0b01, kTwo}, loads, 64), 1);
    EXPECT_EQ(chooser.small_rail({0b10, 0b01, 0b01}, loads, 64), -EAGAIN);
    EXPECT_EQ(chooser.small_rail({0, 0b01, kTwo}, loads, 64), 0);
    EXPECT_EQ(chooser.small_rail({0, 0, kTwo}, loads, 64), -ENETDOWN);
    EXPECT_EQ(chooser.stripe_rails({0b01, 0b10, kTwo}, loads, 1000), 0b01u);
    EXPECT_EQ(chooser.stripe_rails({0, 0b10, kTwo}, loads, 1000), 0b10u);
    EXPECT_EQ(chooser.stripe_rails({0, 0, kTwo}, loads, 1000), 0u);
    EXPECT_EQ(chooser.stripe_rails({kTwo, 0, 0}, loads, 1000), 0u);
  }
}

TEST(RailChooser, AShortTransferGetsFewRailsTheFirstToFinish) {
  RailLoads loads;
  loads.posted(0, 4096);
  loads.set_distance(3, 40);
  const RailChooser chooser(RailPolicy::kWeighted, kFour, 0);
  const uint32_t each = RailChooser::kMessagesPerRail;
  EXPECT_EQ(chooser.stripe_rails(all_of(kFour), loads, 1), 0b0010u);
  EXPECT_EQ(chooser.stripe_rails(all_of(kFour), loads, 2 * each - 1), 0b0010u);
  EXPECT_EQ(chooser.stripe_rails(all_of(kFour), loads, 2 * each), 0b0110u);
  EXPECT_EQ(chooser.stripe_rails(all_of(kFour), loads, 4 * each), kFour);
  const RailChooser fixed(RailPolicy::kStatic, kFour, 3);
  EXPECT_EQ(fixed.stripe_rails(all_of(kFour), loads, 1000), 0b1000u);
  EXPECT_FALSE(chooser.has_equal_stripes());
  EXPECT_TRUE(fixed.has_equal_stripes());
}

TEST(RailChooser, FollowsTheSetOfRails) {
  const RailLoads loads;
  RailChooser chooser(RailPolicy::kStatic, 0b01, 1);
  EXPECT_EQ(chooser.small_rail(all_of(0b01), loads, 64), 0);
  chooser.set_rails(kTwo);
  EXPECT_EQ(chooser.small_rail(all_of(kTwo), loads, 64), 1);
}

}  // namespace
}  // namespace rio::rail
