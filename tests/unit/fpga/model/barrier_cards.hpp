/// @file
/// Model cards on a wire on which each reaches each, all in one thread, each with a host that takes
/// part in barriers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "tests/conformance/model_under_test.hpp"
#include "tests/conformance/test_ring.hpp"
#include "tests/support/manual_clock.hpp"

namespace rio::test {

/// Rings from each card to each, itself included.
class Mesh {
 public:
  static constexpr uint32_t kRingBytes = 8192;
  static constexpr uint32_t kFirstId = 0x100;

  explicit Mesh(uint32_t cards) : cards_(cards) {
    for (uint32_t i = 0; i < cards * cards; ++i) {
      ways_.emplace_back();
    }
  }
  /// Let the wire know whether partners run. No partner has answered yet.
  void watch() {
    for (Way& way : ways_) {
      way.out.watched = true;
    }
  }
  /// Let cards know that nothing is lost.
  void take_pledges() {
    for (Way& way : ways_) {
      way.out.takes_pledges = true;
    }
  }
  [[nodiscard]] std::unique_ptr<model::Wire> plug(uint32_t card) {
    return std::make_unique<End>(*this, card);
  }

 private:
  struct Way {
    model::RingBox requests{kRingBytes};
    model::RingBox responses{kRingBytes};
    model::Outbound out{&requests.writer, &responses.writer};
  };
  class End final : public model::Wire {
   public:
    End(Mesh& mesh, uint32_t card) : mesh_(mesh), card_(card) {
      for (uint32_t from = 0; from < mesh.cards_; ++from) {
        Way& way = mesh.way(from, card);
        ends_.push_back({&way.requests.reader, &way.responses.reader, kFirstId + from, 0});
      }
      inbound_ = ends_;
    }
    model::Outbound* route(uint32_t dest_id) override {
      const uint32_t to = dest_id - kFirstId;
      return to < mesh_.cards_ ? &mesh_.way(card_, to).out : nullptr;
    }
    [[nodiscard]] bool link_up() const override { return true; }

   private:
    Mesh& mesh_;
    uint32_t card_;
    std::vector<model::Inbound> ends_;
  };
  Way& way(uint32_t from, uint32_t to) { return ways_[from * cards_ + to]; }

  uint32_t cards_;
  std::deque<Way> ways_;
};

/// A card of a mesh, as a function that TestRing drives. Its run() steps it.
class MeshCard final : public ModelUnderTest {
 public:
  MeshCard(const model::Config& config, ManualClock* clock, std::unique_ptr<model::Wire> wire)
      : ModelUnderTest(config.queue_pairs) {
    create(config, false, clock, std::move(wire));
  }
  ~MeshCard() override { card_.reset(); }
  /// Gives queue pair 0 its destID, and doorbells to that.
  void bring_up(uint32_t dest_id, uint32_t response_us) {
    namespace map = regs::rx_map;
    write32(regs::id::response_timeout_us(), response_us);
    write32(regs::id::retry_delay_us(), 2);
    write32(regs::id::qp_dest_id(0), dest_id);
    write32(map::dest_id(0), dest_id);
    write32(map::mbox_lo(0), ~0u);
    write32(map::entry(0), map::Entry::valid.put(1) | map::Entry::doorbells.put(1));
    write32(regs::id::gen_req(), 1);
    write32(map::apply(), 1);
    run();
  }
  void run() override {
    for (uint32_t i = 0; i < 400; ++i) {
      card_->step();
    }
  }
  /// A host has started a barrier, or waits for one.
  void step_to_start() { card_->step_to_start(); }
  void step_to_receive() { card_->step_to_receive(); }
  void set_faults(const model::FaultConfig& faults) { card_->set_faults(faults); }
  void advance_us(uint64_t /*us*/) override {}
  void sleep_us(uint64_t /*us*/) override {}
  bool send(const Packet& /*packet*/) override { return false; }
  bool receive(Packet* /*out*/) override { return false; }
  bool segmented() const override { return true; }
};

}  // namespace rio::test
