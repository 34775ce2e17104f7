/// @file
/// A model card that the test steps by hand, one of several on a wire. The host side uses only what
/// docs/card.md says, so that two cards with the same input can be compared.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "fpga/model/frame_ring.hpp"
#include "tests/conformance/model_under_test.hpp"
#include "tests/conformance/test_ring.hpp"
#include "tests/support/manual_clock.hpp"

namespace rio::test {

inline constexpr uint32_t kResponseTimeoutUs = 10'000;

/// One direction between two cards.
struct OneWay {
  model::RingBox requests{64 * 1024};
  model::RingBox responses{32 * 1024};
  model::LeaseWords leases;  // of the sender
};

/// Reads memory of this process, as a wire between processes reads the memory of another one.
class MemoryPuller final : public model::Puller {
 public:
  uint64_t pull(std::span<const model::PullPiece> pieces) override {
    uint64_t pulled = 0;
    for (const model::PullPiece& piece : pieces) {
      std::memcpy(piece.to, reinterpret_cast<const uint8_t*>(piece.from), piece.len_bytes);
      pulled += piece.len_bytes;
    }
    ++pulls;
    bytes += pulled;
    if (after_pull) {
      after_pull();
    }
    return pulled;
  }
  uint64_t pulls = 0;
  uint64_t bytes = 0;                // of them all
  std::function<void()> after_pull;  // called before the bytes count
};

/// A MemoryPuller for one partner, which gives and has leases.
class LeasedPuller final : public model::Puller {
 public:
  LeasedPuller(MemoryPuller* all, OneWay* in, OneWay* out)
      : Puller(&in->leases, out == nullptr ? nullptr : &out->leases),
        all_(*all),
        theirs_(in->leases) {}
  uint64_t pull(std::span<const model::PullPiece> pieces) override { return all_.pull(pieces); }
  /// Packets that the partner has read by leases.
  [[nodiscard]] const model::LeaseWords& theirs() const { return theirs_; }

 private:
  MemoryPuller& all_;
  const model::LeaseWords& theirs_;
};

/// How long messages travel between two cards that are not stepped by one thread.
/// kPushed: as by UDP, where the wire sends the bytes of a run along. kMapped: as between
/// processes.
enum class LongMessages : uint8_t { kInRing, kPulled, kPushed, kBytesBehind, kMapped };

/// A card's end of a wire to any number of others. No card is a neighbour: all frames go through
/// rings.
class RingsWire final : public model::Wire {
 public:
  /// @param out the rings to each node, null to this one. @param in the rings from each.
  RingsWire(const std::vector<OneWay*>& out, const std::vector<OneWay*>& in, LongMessages longs) {
    const bool maps = longs == LongMessages::kMapped;
    // All addresses of the process, where they are.
    all_.add({kLowest, uint64_t{1} << 47, reinterpret_cast<const uint8_t*>(kLowest)});
    for (OneWay* way : out) {
      model::Outbound& to = out_.emplace_back();
      if (way != nullptr) {
        to = {&way->requests.writer, &way->responses.writer};
        to.pulls = longs == LongMessages::kInRing ? nullptr : &pulls_;
        to.takes_bytes_behind = longs == LongMessages::kBytesBehind || maps;
        to.takes_long = longs == LongMessages::kPulled || maps;
        to.mapped = maps ? &all_ : nullptr;
      }
    }
    pulls_ = longs == LongMessages::kPulled || longs == LongMessages::kPushed || maps ? 1 : 0;
    for (size_t i = 0; i < in.size(); ++i) {
      OneWay* const way = in[i];
      if (way != nullptr) {
        LeasedPuller& puller = pullers_.emplace_back(&puller_, way, out[i]);
        out_[i].puller = &puller;
        in_.push_back({&way->requests.reader, &way->responses.reader});
        in_.back().puller = &puller;
        in_.back().windows = maps ? &all_ : nullptr;
      }
    }
    inbound_ = in_;
    mine_ = out;
    end_leases();
  }
  [[nodiscard]] uint64_t lease_number() const override { return lease_; }
  void end_leases() override {
    ++lease_;
    for (OneWay* way : mine_) {
      if (way != nullptr) {
        way->leases.number = lease_;
      }
    }
  }
  uint64_t leased_packets() override {
    uint64_t all = 0;
    for (const LeasedPuller& puller : pullers_) {
      all += puller.theirs().packets;
    }
    return all - std::exchange(packets_, all);
  }
  model::Outbound* route(uint32_t dest_id) override {
    const uint32_t node = (dest_id >> 8) - 1;
    return node < out_.size() && out_[node].requests != nullptr ? &out_[node] : nullptr;
  }
  [[nodiscard]] bool link_up() const override { return true; }
  [[nodiscard]] MemoryPuller& puller() { return puller_; }

 private:
  static constexpr uint64_t kLowest = 4096;

  std::deque<model::Outbound> out_;
  std::vector<model::Inbound> in_;
  std::atomic<uint32_t> pulls_{0};
  MemoryPuller puller_;
  std::deque<LeasedPuller> pullers_;
  std::vector<OneWay*> mine_;
  uint64_t lease_ = 0;
  uint64_t packets_ = 0;
  model::Windows all_;
};

class SameNode final : public ModelUnderTest {
 public:
  SameNode(const model::Config& config, std::unique_ptr<model::Wire> wire, ManualClock* clock)
      : ModelUnderTest(config.queue_pairs) {
    create(config, false, clock, std::move(wire));
  }

  void run() override {
    for (int i = 0; i < 40; ++i) {
      card_->step();
    }
  }
  // The other end of the wire is another card, which has its own clock.
  void advance_us(uint64_t /*us*/) override {}
  void sleep_us(uint64_t /*us*/) override {}
  bool send(const Packet& /*packet*/) override { return false; }
  bool receive(Packet* /*out*/) override { return false; }
  [[nodiscard]] bool segmented() const override { return true; }

  [[nodiscard]] model::Card& card() { return *card_; }
};

}  // namespace rio::test
