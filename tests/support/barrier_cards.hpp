/// @file
/// Emulated cards at one switch, one member of a barrier group each, stepped by one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/formatted.hpp"
#include "lib/barrier/scheme.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "tests/support/fabric_topology.hpp"
#include "tests/support/model_bus.hpp"

namespace rio::test {

/// The cards have a clock of their own, so that nothing depends on the machine's speed.
class BarrierCards {
 public:
  static constexpr uint32_t kTickNs = 100;
  static constexpr uint32_t kGroup = 3;
  static constexpr uint32_t kResponseUs = 1000;
  static constexpr uint64_t kStepsMost = 2'000'000;

  struct Member {
    std::unique_ptr<ModelBus> bus;
    std::unique_ptr<pmd::Card> card;
    std::unique_ptr<pmd::QueuePair> pair;
    regs::BarrierDesc desc;
    std::vector<pmd::BarrierDone> done;
    [[nodiscard]] pmd::BarrierQueue& queue() { return pair->barriers(); }
  };

  /// @param config of all cards.
  BarrierCards(uint32_t members, const barrier::Scheme& scheme, const model::Config& config = {})
      : fabric_(fabric(topology_of(members + 1))), members_(members) {
    for (uint32_t i = 0; i < members; ++i) {
      members_[i].bus = plug(i, config);
      open(i);
      members_[i].desc = descriptor(scheme, i);
    }
  }

  [[nodiscard]] static uint32_t dest_id(uint32_t member) { return member + 1; }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(members_.size()); }
  [[nodiscard]] Member& operator[](uint32_t i) { return members_[i]; }

  /// A card that is no member, with the next destID.
  [[nodiscard]] std::unique_ptr<ModelBus> outsider() { return plug(size(), {}); }

  /// Resets the card of a member, and opens its rings again.
  void open(uint32_t i) {
    Member& member = members_[i];
    member.pair.reset();
    pmd::CardConfig identity;
    identity.dest_ids = {dest_id(i)};
    identity.response_timeout_us = kResponseUs;
    identity.receive_timeout_us = kResponseUs;
    ASSERT_EQ(pmd::Card::open(*member.bus, identity, &member.card), 0);
    pmd::QueuePairConfig rings;
    rings.barriers = true;
    rings.barrier_log2 = 3;
    rings.start_index = 0xFFFFFFF0;
    ASSERT_EQ(member.card->open_queue_pair(0, rings, &member.pair), 0);
  }
  [[nodiscard]] bool post(uint32_t i, uint32_t epoch, regs::BarrierOp op = regs::BarrierOp::kRun) {
    regs::BarrierDesc desc = members_[i].desc;
    desc.control |= regs::barrier_desc::Control::op.put(static_cast<uint32_t>(op));
    const pmd::BarrierRequest request{&desc, 1000 + i, epoch};
    return members_[i].queue().post(&request, 1) == 1;
  }
  /// Poll a member once: its card works, and barriers that have ended are kept in `done`.
  void poll(uint32_t i) {
    pmd::BarrierDone done[4];
    const uint16_t n = members_[i].queue().reap(done, 4);
    members_[i].done.insert(members_[i].done.end(), done, done + n);
  }
  /// Polls all members until `over()`. @return false: it did not become true in time.
  template <class Over>
  [[nodiscard]] bool poll_until(Over&& over) {
    for (uint64_t step = 0; step < kStepsMost; ++step) {
      if (over()) {
        return true;
      }
      poll(static_cast<uint32_t>(step % size()));
    }
    return false;
  }
  [[nodiscard]] bool poll_until_ended(uint32_t i, size_t count = 1) {
    return poll_until([&] { return members_[i].done.size() >= count; });
  }

 private:
  static std::string topology_of(uint32_t cards) {
    std::string ends;
    std::string links;
    std::string routes;
    for (uint32_t i = 0; i < cards; ++i) {
      const char* const comma = i == 0 ? "" : ", ";
      ends += base::formatted(R"(%s{"name": "e%u"})", comma, i);
      links += base::formatted(R"(%s["e%u", "s:%u"])", comma, i, i);
      routes += base::formatted(R"(%s"%u": %u)", comma, dest_id(i), i);
    }
    return R"({"switches": [{"name": "s", "ports": 16, "routes": {)" + routes +
           R"(}}], "endpoints": [)" + ends + R"(], "links": [)" + links + "]}";
  }
  std::unique_ptr<ModelBus> plug(uint32_t i, const model::Config& config) {
    std::unique_ptr<model::Wire> wire;
    EXPECT_EQ(fabric_->plug("e" + std::to_string(i), &wire), 0);
    return std::make_unique<ModelBus>(config, std::move(wire), &clock_, kTickNs);
  }
  regs::BarrierDesc descriptor(const barrier::Scheme& scheme, uint32_t rank) const {
    barrier::Schedule schedule;
    regs::BarrierDesc desc{};
    EXPECT_EQ(barrier::make_schedule(scheme, size(), rank, &schedule), 0);
    EXPECT_EQ(barrier::write_descriptor(schedule, {.group = kGroup}, dest_id, &desc), 0);
    return desc;
  }

  ManualClock clock_;
  std::shared_ptr<wire::switched::Fabric> fabric_;
  std::vector<Member> members_;
};

}  // namespace rio::test
