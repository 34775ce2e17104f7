#include "lib/barrier/schedule.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "lib/barrier/scheme.hpp"

namespace rio::barrier {
namespace {

uint32_t hundred_and(uint32_t rank) {
  return 100 + rank;
}

Schedule made(const Scheme& scheme, uint32_t ranks, uint32_t rank) {
  Schedule schedule;
  EXPECT_EQ(make_schedule(scheme, ranks, rank, &schedule), 0);
  return schedule;
}

std::string rule_of(const Schedule& schedule) {
  const BrokenRule broken = broken_rule(schedule, 9, 4);
  return broken.rule == nullptr ? "" : broken.rule;
}

TEST(Schedule, DescriptorWordsOfTwoWayAmongNine) {
  regs::BarrierDesc desc{};
  const DescriptorTerms terms{.group = 7, .epoch = 0x89ABCDEF, .cookie = 0x1234, .prio = 2};
  ASSERT_EQ(write_descriptor(made(TwoWay{}, 9, 4), terms, hundred_and, &desc), 0);
  EXPECT_EQ(desc.control, 0x00000420u);
  EXPECT_EQ(desc.group, 7u);
  EXPECT_EQ(desc.epoch, 0x89ABCDEFu);
  EXPECT_EQ(desc.cookie, 0x1234u);
  EXPECT_EQ(desc.peers[0], 105u);
  EXPECT_EQ(desc.peers[1], 103u);
  EXPECT_EQ(desc.peers[2], 107u);
  EXPECT_EQ(desc.peers[3], 101u);
  for (uint32_t i = 4; i < 40; ++i) {
    EXPECT_EQ(desc.peers[i], 0xFFFFFFFFu);
  }
  EXPECT_EQ(desc.send, 0xFu);
  EXPECT_EQ(desc.await, 0xFu);
  for (const uint32_t word : desc.reserved) {
    EXPECT_EQ(word, 0u);
  }
}

TEST(Schedule, DescriptorWordsOfClassicAmongFive) {
  regs::BarrierDesc desc{};
  const DescriptorTerms terms{.op = regs::BarrierOp::kLoad};
  ASSERT_EQ(write_descriptor(made(Classic{}, 5, 0), terms, hundred_and, &desc), 0);
  EXPECT_EQ(desc.control, 0x00000031u);
  EXPECT_EQ(desc.peers[0], 101u);
  EXPECT_EQ(desc.peers[1], 104u);
  EXPECT_EQ(desc.peers[2], 102u);
  EXPECT_EQ(desc.peers[3], 103u);
  EXPECT_EQ(desc.peers[4], 104u);
  EXPECT_EQ(desc.peers[5], 101u);
  EXPECT_EQ(desc.send, 0x15u);
  EXPECT_EQ(desc.await, 0x2Au);
}

TEST(Schedule, BothDirectionsOfOnePeerTakeOnePlace) {
  const Schedule schedule = made(TwoWay{}, 6, 1);
  EXPECT_EQ(schedule.rounds, 2u);
  EXPECT_EQ(schedule.peer(1, 0), 4u);
  EXPECT_EQ(schedule.peer(1, 1), kNoPeer);
  EXPECT_EQ(schedule.send, 0x7u);
  EXPECT_EQ(schedule.await, 0x7u);
}

TEST(Schedule, WritingRefusesBadTerms) {
  const Schedule schedule = made(TwoWay{}, 9, 4);
  regs::BarrierDesc desc{};
  desc.cookie = 55;
  EXPECT_EQ(write_descriptor(schedule, {.group = 128}, hundred_and, &desc), -EINVAL);
  EXPECT_EQ(write_descriptor(schedule, {.prio = 3}, hundred_and, &desc), -EINVAL);
  EXPECT_EQ(write_descriptor(made(TwoWay{}, 1, 0), {}, hundred_and, &desc), -EINVAL);
  Schedule long_one = schedule;
  long_one.rounds = 21;
  EXPECT_EQ(write_descriptor(long_one, {}, hundred_and, &desc), -EINVAL);
  const auto lost = [](uint32_t rank) { return rank == 7 ? UINT32_MAX : rank; };
  EXPECT_EQ(write_descriptor(schedule, {}, lost, &desc), -EINVAL);
  const auto on_one_node = [](uint32_t /*rank*/) { return 5u; };
  EXPECT_EQ(write_descriptor(schedule, {}, on_one_node, &desc), -EINVAL);
  EXPECT_EQ(desc.cookie, 55u) << "set only on success";
  EXPECT_EQ(write_descriptor(schedule, {.group = 127, .prio = 2}, hundred_and, &desc), 0);
}

TEST(Schedule, EachRuleOfTheCardIsChecked) {
  const Schedule good = made(TwoWay{}, 9, 4);
  EXPECT_EQ(rule_of(good), "");
  EXPECT_EQ(rule_of(Schedule{}), "");

  Schedule bad = good;
  bad.rounds = 21;
  EXPECT_EQ(rule_of(bad), "more rounds than a descriptor has");
  bad = good;
  bad.rounds = 1;
  EXPECT_EQ(rule_of(bad), "a bit beyond the rounds");
  bad = good;
  bad.await |= uint64_t{1} << 63;
  EXPECT_EQ(rule_of(bad), "a bit beyond the rounds");
  bad = good;
  bad.peers[39] = 1;
  EXPECT_EQ(rule_of(bad), "a peer beyond the rounds");
  bad = good;
  bad.rounds = 3;
  EXPECT_EQ(rule_of(bad), "a round without a bit");
  bad = good;
  bad.peers[2] = kNoPeer;
  EXPECT_EQ(rule_of(bad), "a bit without a peer");
  bad = good;
  bad.send &= ~peer_bit(1, 0);
  EXPECT_EQ(rule_of(bad), "");
  bad.await &= ~peer_bit(1, 0);
  EXPECT_EQ(rule_of(bad), "a peer without bits");
  bad = good;
  bad.peers[0] = 4;
  EXPECT_EQ(rule_of(bad), "itself as a peer");
  bad = good;
  bad.peers[3] = 9;
  EXPECT_EQ(rule_of(bad), "a peer that is not in the group");
  bad = good;
  bad.peers[3] = bad.peers[2];
  EXPECT_EQ(rule_of(bad), "one peer twice for one direction");
  bad.send &= ~peer_bit(1, 0);
  bad.await &= ~peer_bit(1, 1);
  EXPECT_EQ(rule_of(bad), "") << "one peer in two places, once a direction";
}

TEST(Schedule, TwentyRoundsFit) {
  Schedule full;
  full.rounds = kRoundsMax;
  for (uint32_t round = 0; round < kRoundsMax; ++round) {
    full.add(round, 0, true, false);
    full.add(round, 1, false, true);
  }
  EXPECT_EQ(rule_of(full), "");
  EXPECT_EQ(full.send, 0x5555555555u);
  EXPECT_EQ(full.await, 0xAAAAAAAAAAu);
  regs::BarrierDesc desc{};
  ASSERT_EQ(write_descriptor(full, {}, hundred_and, &desc), 0);
  EXPECT_EQ(desc.control, 0x140u);
  EXPECT_EQ(desc.peers[38], 100u);
  EXPECT_EQ(desc.peers[39], 101u);
}

}  // namespace
}  // namespace rio::barrier
