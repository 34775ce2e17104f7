#include "pmd/net/peers.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace rio::pmd {
namespace {

std::vector<uint32_t> all_of(const DestIdSet& set) {
  std::vector<uint32_t> all;
  set.for_each([&](uint32_t dest_id) {
    all.push_back(dest_id);
    return true;
  });
  return all;
}

TEST(DestIdSet, EmptyAtFirst) {
  const auto set = std::make_unique<DestIdSet>();
  EXPECT_FALSE(set->has(0));
  EXPECT_FALSE(set->has(65535));
  EXPECT_TRUE(all_of(*set).empty());
}

TEST(DestIdSet, TellsWhatWasThere) {
  const auto set = std::make_unique<DestIdSet>();
  EXPECT_FALSE(set->add(65535));
  EXPECT_TRUE(set->add(65535));
  EXPECT_TRUE(set->has(65535));
  EXPECT_FALSE(set->has(65534));
  EXPECT_TRUE(set->remove(65535));
  EXPECT_FALSE(set->remove(65535));
  EXPECT_FALSE(set->has(65535));
}

TEST(DestIdSet, EachInAscendingOrder) {
  const auto set = std::make_unique<DestIdSet>();
  for (const uint32_t id : {65535u, 0u, 4096u, 63u, 64u, 4095u, 1u}) {
    set->add(id);
  }
  EXPECT_EQ(all_of(*set), (std::vector<uint32_t>{0, 1, 63, 64, 4095, 4096, 65535}));
  set->remove(64);
  EXPECT_EQ(all_of(*set), (std::vector<uint32_t>{0, 1, 63, 4095, 4096, 65535}));
  set->clear();
  EXPECT_TRUE(all_of(*set).empty());
  set->add(64);
  EXPECT_EQ(all_of(*set), (std::vector<uint32_t>{64}));
}

TEST(DestIdSet, EachEndsWhereItIsToldTo) {
  const auto set = std::make_unique<DestIdSet>();
  for (const uint32_t id : {1u, 2u, 5000u, 60'000u}) {
    set->add(id);
  }
  for (uint32_t n = 1; n <= 4; ++n) {
    uint32_t seen = 0;
    set->for_each([&](uint32_t) { return ++seen != n; });
    EXPECT_EQ(seen, n);
  }
}

TEST(DestIdSet, EachMayRemoveWhatItSees) {
  const auto set = std::make_unique<DestIdSet>();
  for (uint32_t id = 0; id < 200; ++id) {
    set->add(id);
  }
  uint32_t seen = 0;
  set->for_each([&](uint32_t id) {
    ++seen;
    return set->remove(id);
  });
  EXPECT_EQ(seen, 200u);
  EXPECT_TRUE(all_of(*set).empty());
}

TEST(DestIdSet, AsASetOfNumbers) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto set = std::make_unique<DestIdSet>();
  std::set<uint32_t> wanted;
  for (uint32_t i = 0; i < 20'000; ++i) {
    const uint32_t id = random() % kNetDestIds;
    if (random() % 3 == 0) {
      EXPECT_EQ(set->remove(id), wanted.erase(id) == 1);
    } else {
      EXPECT_EQ(set->add(id), !wanted.insert(id).second);
    }
  }
  EXPECT_EQ(all_of(*set), std::vector<uint32_t>(wanted.begin(), wanted.end()));
}

TEST(Peers, SendersForOthers) {
  const auto peers = std::make_unique<Peers>();
  EXPECT_TRUE(peers->sends_for(0x200, 0x200));
  EXPECT_FALSE(peers->sends_for(0x201, 0x200));
  peers->set_more(0x200, 2);
  EXPECT_TRUE(peers->sends_for(0x201, 0x200));
  EXPECT_TRUE(peers->sends_for(0x202, 0x200));
  EXPECT_FALSE(peers->sends_for(0x203, 0x200));
  EXPECT_FALSE(peers->sends_for(0x1FF, 0x200));
  EXPECT_FALSE(peers->sends_for(0x200, 0x201)) << "not the other way";
  EXPECT_TRUE(peers->sends_for(0x201, 0x201)) << "for itself, too";
  peers->set_more(0x200, 1);
  EXPECT_TRUE(peers->sends_for(0x201, 0x200));
  EXPECT_FALSE(peers->sends_for(0x202, 0x200));
  peers->forget();
  EXPECT_FALSE(peers->sends_for(0x201, 0x200));
}

TEST(Peers, ClaimsSayNothingOfOthers) {
  const auto peers = std::make_unique<Peers>();
  peers->set_more(0x202, 4);  // an honest one
  peers->set_more(0x201, kMoreIdsMask);
  EXPECT_TRUE(peers->sends_for(0x203, 0x202)) << "a claim of its neighbour does not shut it out";
  EXPECT_FALSE(peers->sends_for(0x201, 0x202)) << "nor may that one send as it";
  EXPECT_FALSE(peers->sends_for(0x201, 0x200));
  peers->set_more(0x201, 0);
  EXPECT_TRUE(peers->sends_for(0x206, 0x202));
}

TEST(Peers, AtTheEndOfAllDestIds) {
  const auto peers = std::make_unique<Peers>();
  peers->set_more(65535, kMoreIdsMask);
  peers->set_more(65530, kMoreIdsMask);
  EXPECT_TRUE(peers->sends_for(65535, 65530));
  EXPECT_FALSE(peers->sends_for(0, 65535)) << "no wrap";
}

TEST(Mates, DoorbellsOfAllDistances) {
  EXPECT_EQ(mate_doorbell(0x100, 0x100), 0xC000);
  EXPECT_EQ(mate_doorbell(0x100, 0x200), 0xC100);
  EXPECT_EQ(mate_doorbell(0x200, 0x100), 0xBF00);
  for (const uint32_t port : {0u, 1u, 0x4000u, 0xFFFFu}) {
    for (uint32_t mate = 0; mate < kNetDestIds; mate += 257) {
      const uint16_t info = mate_doorbell(port, mate);
      EXPECT_EQ(info == 0, mate + 0x4000 < port || mate >= port + 0x4000);
      if (info != 0) {
        EXPECT_GE(info, kMateDoorbell);
        EXPECT_EQ(mate_of(port, info), mate);
      }
    }
  }
  EXPECT_GE(mate_of(0, kMateDoorbell), kNetDestIds) << "below the first one";
  EXPECT_GE(mate_of(0xFFFF, 0xFFFF), kNetDestIds) << "behind the last one";
}

TEST(Mates, PairsOfOneWay) {
  const auto mates = std::make_unique<MateSet>();
  EXPECT_FALSE(mates->has(0, 0)) << "empty at first";
  mates->add(1, 2);
  mates->add(1, 2);
  mates->add(1, 3);
  mates->add(2, 3);
  EXPECT_TRUE(mates->has(1, 2));
  EXPECT_FALSE(mates->has(2, 1));
  mates->remove(1);
  EXPECT_FALSE(mates->has(1, 2) || mates->has(1, 3));
  EXPECT_TRUE(mates->has(2, 3));
  for (uint32_t i = 0; i < MateSet::kPairsMax; ++i) {
    mates->add(7, i);
  }
  EXPECT_FALSE(mates->has(7, MateSet::kPairsMax - 1)) << "there was one";
  EXPECT_TRUE(mates->has(7, MateSet::kPairsMax - 2));
  mates->clear();
  EXPECT_FALSE(mates->has(7, 0) || mates->has(2, 3));
}

TEST(Peers, MatesSendForPortsThatSaySoOrAreNotThere) {
  const auto peers = std::make_unique<Peers>();
  peers->joined.add(0x100);
  peers->mates.add(0x200, 0x100);
  peers->mates.add(0x200, 0x300);
  EXPECT_FALSE(peers->may_send(0x200, mac_of(0x100))) << "one that is there has not said so";
  EXPECT_TRUE(peers->may_send(0x200, mac_of(0x300))) << "no other port has that address";
  EXPECT_FALSE(peers->may_send(0x201, mac_of(0x300)));
  peers->set_more(0x200, 1);
  EXPECT_TRUE(peers->may_send(0x201, mac_of(0x300))) << "a queue of that port";
  peers->joined.add(0x300);
  EXPECT_FALSE(peers->may_send(0x200, mac_of(0x300)));
  peers->mates.add(0x100, 0x200);
  EXPECT_TRUE(peers->may_send(0x200, mac_of(0x100)));
  EXPECT_FALSE(peers->may_send(0x300, mac_of(0x100))) << "its word is for one alone";
}

TEST(Peers, AddressesOfNoCard) {
  const auto peers = std::make_unique<Peers>();
  constexpr Mac kForeign = 0x0900'0000'0002;
  EXPECT_FALSE(peers->may_send(0x200, kForeign));
  peers->mates.add(0x200, 0x200);
  EXPECT_TRUE(peers->may_send(0x200, kForeign));
  EXPECT_FALSE(peers->may_send(0x200, kForeign | 1)) << "a group";
  EXPECT_FALSE(peers->may_send(0x200, mac_of(0x201)));
  EXPECT_EQ(peers->receiver_of(kForeign), kNoNetDestId) << "no peer is there";
  peers->reachable.add(0x400);
  EXPECT_EQ(peers->receiver_of(kForeign), kNoNetDestId) << "an invited one is not there yet";
  peers->joined.add(0x200);
  EXPECT_EQ(peers->receiver_of(kForeign), 0x200u);
  EXPECT_EQ(peers->receiver_of(kForeign | 1), kNoNetDestId);
  peers->joined.add(0x300);
  EXPECT_EQ(peers->receiver_of(kForeign), kNoNetDestId) << "one of two";
  peers->take_away(0x200);
  EXPECT_EQ(peers->receiver_of(kForeign), 0x300u);
}

TEST(Peers, MatesGetFramesForPortsThatAreGone) {
  const auto peers = std::make_unique<Peers>();
  peers->own.store(0x500);
  peers->mates.add(0x500, 0x100);
  EXPECT_EQ(peers->receiver_of(mac_of(0x100)), kNoNetDestId);
  peers->joined.add(0x300);
  EXPECT_EQ(peers->receiver_of(mac_of(0x100)), kNoNetDestId) << "a card's address is that card's";
  peers->reachable.add(0x100);
  EXPECT_EQ(peers->receiver_of(mac_of(0x100)), 0x100u) << "invited";
  peers->joined.add(0x200);
  peers->mates.add(0x200, 0x100);
  EXPECT_EQ(peers->receiver_of(mac_of(0x100)), 0x200u);
  peers->joined.add(0x100);
  EXPECT_EQ(peers->receiver_of(mac_of(0x100)), 0x100u);
  peers->take_away(0x100);
  EXPECT_EQ(peers->receiver_of(mac_of(0x100)), 0x200u);
  peers->take_away(0x200);
  EXPECT_EQ(peers->receiver_of(mac_of(0x100)), kNoNetDestId);
}

TEST(Peers, OwedDoorbellsAreSeen) {
  const auto peers = std::make_unique<Peers>();
  EXPECT_EQ(peers->owed.load(), 0u);
  peers->owe(peers->owed_call, 7);
  EXPECT_NE(peers->owed.load(), 0u);
  EXPECT_TRUE(peers->owed_call.has(7));
  EXPECT_FALSE(peers->owed_answer.has(7));
  for (DestIdSet* const set : {&peers->joined, &peers->reachable, &peers->bundles}) {
    set->add(7);
  }
  peers->forget();
  for (DestIdSet* const set :
       {&peers->joined, &peers->reachable, &peers->bundles, &peers->owed_call}) {
    EXPECT_FALSE(set->has(7));
  }
}

TEST(Addresses, AsRionetHasThem) {
  const uint8_t bytes[] = {0x00, 0x01, 0x00, 0x01, 0x12, 0x34, 0xEE, 0xEE};
  EXPECT_EQ(load_mac(bytes), mac_of(0x1234));
  EXPECT_EQ(dest_id_of(load_mac(bytes)), 0x1234u);
  const rte_ether_addr address = address_of(0x1234);
  EXPECT_EQ(std::memcmp(address.addr_bytes, bytes, 6), 0);
  for (uint32_t i = 0; i < 4; ++i) {
    uint8_t other[8];
    std::memcpy(other, bytes, 8);
    other[i] ^= 0x80;
    EXPECT_EQ(dest_id_of(load_mac(other)), kNoNetDestId) << i;
  }
  EXPECT_FALSE(is_multicast(mac_of(0xFFFF)));
  const uint8_t everybody[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  EXPECT_TRUE(is_multicast(load_mac(everybody)));
  EXPECT_EQ(dest_id_of(kNoMac), kNoNetDestId);
}

}  // namespace
}  // namespace rio::pmd
