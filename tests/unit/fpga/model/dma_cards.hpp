/// @file
/// Two cards, the first of which reads and writes the memory of the second.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/unit/fpga/model/same_world.hpp"

namespace rio::test {

using regs::DmaOp;
using regs::Status;

inline constexpr uint32_t kDmaLog2 = 7;
inline constexpr uint32_t kDmaIds[] = {0x100, 0x200};  // as RingsWire routes them
inline constexpr size_t kLocalBytes = 1 << 20;
inline constexpr size_t kWindowBytes = 700'000;
inline constexpr size_t kRemoteBytes = 800'000;  // mapped, from the begin of the window
inline constexpr uint64_t kWindowAt = 0x5000'0000;

struct DmaAccess {
  DmaOp op;
  uint32_t length;
  uint64_t local;   // offset
  uint64_t remote;  // offset
  uint32_t cookie;
};
struct DmaResult {
  uint32_t cookie;
  Status status;
  uint32_t bytes;
  bool operator==(const DmaResult&) const = default;
};

/// Card 0 reads and writes the memory of card 1.
class DmaCards {
 public:
  explicit DmaCards(bool exact, LongMessages longs = LongMessages::kPulled) {
    for (uint32_t node = 0; node < 2; ++node) {
      const std::vector<OneWay*> out = {node == 0 ? nullptr : &ways_[1],
                                        node == 0 ? &ways_[0] : nullptr};
      const std::vector<OneWay*> in = {node == 0 ? nullptr : &ways_[0],
                                       node == 0 ? &ways_[1] : nullptr};
      auto wire = std::make_unique<RingsWire>(out, in, longs);
      wires_[node] = wire.get();
      model::Config config;
      config.exact = exact;
      nodes_[node] = std::make_unique<SameNode>(config, std::move(wire), &clock_);
      start(node);
    }
    local_ = nodes_[0]->map(kLocalBytes);
    remote_ = nodes_[1]->map(kRemoteBytes);
    dma_ = std::make_unique<TestRing>(*nodes_[0], RingConfig{.ring = kDmaRing, .log2 = kDmaLog2});
    dma_->start();
    events_ = std::make_unique<TestRing>(*nodes_[1], RingConfig{.ring = kEventRing, .log2 = 8});
    events_->start();
    set_window(true);
    steps(1, 40);
  }

  void post(const DmaAccess& access) {
    dma_->put(regs::DmaDesc{regs::dma_desc::Control::op.put(static_cast<uint32_t>(access.op)),
                            kDmaIds[1], access.length, access.cookie, kWindowAt + access.remote,
                            local_.iova + access.local});
    dma_->post();
  }
  void set_window(bool open) {
    namespace w = regs::window;
    using W = w::Control;
    SameNode& node = *nodes_[1];
    node.write32(w::rio_lo(0, 0), static_cast<uint32_t>(kWindowAt));
    node.write32(w::size_lo(0, 0), kWindowBytes);
    node.write32(w::bus_lo(0, 0), static_cast<uint32_t>(remote_.iova));
    node.write32(w::bus_hi(0, 0), static_cast<uint32_t>(remote_.iova >> 32));
    node.write32(w::control(0, 0), W::gen.put(++window_gen_) | W::enable.put(open) |
                                       W::read.put(1) | W::write.put(1));
  }
  [[nodiscard]] bool window_is_set() {
    namespace w = regs::window;
    return w::Control::gen.get(nodes_[1]->read32(w::status(0, 0))) == window_gen_;
  }
  void steps(uint32_t node, uint32_t count) {
    for (; count > 0; --count) {
      nodes_[node]->card().step();
    }
  }
  /// Lets both cards work until nothing moves.
  void settle() {
    for (uint32_t i = 0; i < 600; ++i) {
      steps(0, 1);
      steps(1, 1);
    }
  }
  [[nodiscard]] std::vector<DmaResult> take() {
    std::vector<DmaResult> all;
    for (regs::EntryCpl cpl; dma_->take(&cpl);) {
      all.push_back({cpl.cookie, code_of(cpl.status & ~(1u << 31)), cpl.bytes});
    }
    std::sort(all.begin(), all.end(),
              [](const DmaResult& a, const DmaResult& b) { return a.cookie < b.cookie; });
    return all;
  }
  [[nodiscard]] bool saw_violation() {
    bool any = false;
    for (regs::EventCpl cpl; events_->take(&cpl);) {
      any = true;
    }
    events_->give_back();
    return any;
  }
  [[nodiscard]] SameNode& node(uint32_t number) { return *nodes_[number]; }
  [[nodiscard]] MemoryPuller& puller(uint32_t number) { return wires_[number]->puller(); }
  [[nodiscard]] const Memory& local() const { return local_; }
  [[nodiscard]] const Memory& remote() const { return remote_; }
  [[nodiscard]] TestRing& dma() { return *dma_; }
  [[nodiscard]] ManualClock& clock() { return clock_; }

 private:
  static constexpr auto kDmaRing = static_cast<uint32_t>(regs::Ring::kDma);
  static constexpr auto kEventRing = static_cast<uint32_t>(regs::Ring::kEvent);

  void start(uint32_t number) {
    namespace map = regs::rx_map;
    SameNode& node = *nodes_[number];
    node.write32(regs::id::response_timeout_us(), kResponseTimeoutUs);
    node.write32(regs::id::qp_dest_id(0), kDmaIds[number]);
    node.write32(map::dest_id(0), kDmaIds[number]);
    node.write32(map::entry(0), map::Entry::valid.put(1) | map::Entry::requests.put(1));
    node.write32(map::apply(), 1);
    node.write32(regs::id::gen_req(), 1);
    steps(number, 40);
    ASSERT_EQ(node.read32(regs::id::gen_ack()), 1u);
  }

  ManualClock clock_;
  OneWay ways_[2];
  RingsWire* wires_[2] = {};
  std::unique_ptr<SameNode> nodes_[2];
  Memory local_;
  Memory remote_;
  std::unique_ptr<TestRing> dma_;
  std::unique_ptr<TestRing> events_;
  uint32_t window_gen_ = 0;
};

inline void fill(const Memory& memory, uint32_t seed) {
  for (size_t i = 0; i < memory.len_bytes; ++i) {
    memory.va[i] = static_cast<uint8_t>((i + seed) * 2654435761u >> 13);
  }
}

}  // namespace rio::test
