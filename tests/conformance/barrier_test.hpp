/// @file
/// Base of the conformance cases of barriers: descriptors, and peers that the test plays.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/conformance/card_test.hpp"
#include "tests/support/barrier_desc.hpp"

namespace rio::test {

inline constexpr uint32_t kGroup = 5;
inline constexpr uint32_t kPeerA = 0x0202;
inline constexpr uint32_t kPeerB = 0x0303;
inline constexpr uint32_t kStranger = 0x0404;
inline constexpr uint32_t kSlotIndex = 1u << 31;

/// A descriptor of group kGroup, whose cookie has the epoch.
[[nodiscard]] inline regs::BarrierDesc barrier_desc(uint32_t rounds,
                                                    const std::vector<PeerOfRound>& peers,
                                                    uint32_t epoch, regs::BarrierOp op) {
  regs::BarrierDesc desc = make_barrier_desc(rounds, peers, op);
  desc.group = kGroup;
  desc.epoch = epoch;
  desc.cookie = 0x80000000u | epoch;
  return desc;
}
/// Two rounds: with peer A, then with peer B.
[[nodiscard]] inline regs::BarrierDesc two_rounds(uint32_t epoch = 0,
                                                  regs::BarrierOp op = regs::BarrierOp::kRun) {
  return barrier_desc(2, {{0, 0, kPeerA}, {1, 1, kPeerB}}, epoch, op);
}

/// Information of a notification, by the bits of docs/card.md.
[[nodiscard]] constexpr uint16_t notice(uint32_t round, uint32_t epoch = 0,
                                        uint32_t group = kGroup) {
  return static_cast<uint16_t>(0x8000 | group << 8 | (epoch & 7) << 5 | round);
}
[[nodiscard]] constexpr uint16_t cancel(uint32_t epoch = 0, uint32_t group = kGroup) {
  return notice(30, epoch, group);
}

class BarrierCardTest : public CardTest {
 protected:
  /// Starts the barrier ring of queue pair 0.
  TestRing& barriers(RingConfig config = {}, uint32_t resend_limit = 0, uint32_t reserve = 0) {
    config.log2 = 3;
    config.clog2 = 5;
    card().write32(regs::barrier::resend_limit(config.qp), resend_limit);
    card().write32(regs::barrier::early_reserve(config.qp), reserve);
    return start(ring_, regs::Ring::kBarrier, config);
  }
  void post(const regs::BarrierDesc& desc) {
    ring_->put(desc);
    ring_->post();
    work();
  }
  void write_slot(uint32_t slot, const regs::BarrierDesc& desc) {
    uint32_t words[64];
    std::memcpy(words, &desc, sizeof words);
    for (uint32_t i = 0; i < 64; ++i) {
      card().write32(regs::barrier::slot(0, 64 * slot + i), words[i]);
    }
  }
  void go(uint32_t slot, uint32_t epoch) {
    card().write32(regs::barrier::go(0, slot), epoch);
    work();
  }
  /// Lets the card work, and sorts the packets that it sends.
  void work() {
    for (Packet& packet : sent()) {
      (packet.kind == Packet::kResponse ? answers_ : notices_).push_back(std::move(packet));
    }
  }
  /// Send a notification of a peer to the card. @return the card's answer; nullopt: none.
  std::optional<Answer> tell(uint32_t source, uint16_t info, uint32_t dest = kOwnId) {
    Packet packet = doorbell(info, next_tid_++);
    packet.source = source;
    packet.dest = dest;
    push(packet);
    work();
    EXPECT_LE(answers_.size(), 1u);
    const std::vector<Packet> answers = std::exchange(answers_, {});
    return answers.empty() || answers[0].dest != source || answers[0].tid != packet.tid
               ? std::nullopt
               : std::optional(answers[0].answer);
  }
  /// The notifications that the card has sent since the last call.
  std::vector<Packet> notices() {
    work();
    return std::exchange(notices_, {});
  }
  /// Expects that the card has sent just these notifications since the last call. @return them.
  std::vector<Packet> expect_notices(std::vector<std::pair<uint32_t, uint16_t>> expected) {
    std::vector<Packet> packets = notices();
    std::vector<std::pair<uint32_t, uint16_t>> seen;
    for (const Packet& packet : packets) {
      EXPECT_EQ(packet.kind, Packet::kDoorbell);
      EXPECT_EQ(packet.source, kOwnId);
      seen.emplace_back(packet.dest, static_cast<uint16_t>(packet.address));
    }
    std::ranges::sort(seen);
    std::ranges::sort(expected);
    EXPECT_EQ(seen, expected);
    return packets;
  }
  void respond_all(const std::vector<Packet>& packets, Answer with = Answer::kDone) {
    for (const Packet& packet : packets) {
      respond(packet, with);
    }
    work();
  }
  /// Lets the peers of two_rounds() take part in a barrier that was posted.
  void take_part(uint32_t epoch = 0) {
    EXPECT_EQ(tell(kPeerA, notice(0, epoch)), Answer::kDone);
    EXPECT_EQ(tell(kPeerB, notice(1, epoch)), Answer::kDone);
    respond_all(expect_notices({{kPeerA, notice(0, epoch)}, {kPeerB, notice(1, epoch)}}));
  }
  /// Lets the peers of two_rounds() take part, one after the other, in a barrier that has sent its
  /// first notification; it ends with the second one.
  void take_turns(uint32_t epoch) {
    expect_no_end();
    EXPECT_EQ(tell(kPeerA, notice(0, epoch)), Answer::kDone);
    EXPECT_EQ(tell(kPeerB, notice(1, epoch)), Answer::kDone);
    respond_all(expect_notices({{kPeerB, notice(1, epoch)}}));
    expect_end(Status::kOk);
  }
  /// Runs two_rounds() to its end.
  void run_one(uint32_t epoch) {
    post(two_rounds(epoch));
    take_part(epoch);
    expect_end(Status::kOk);
  }
  /// Expects one completion. @return it.
  regs::BarrierCpl expect_end(regs::Status status) {
    const auto ends = ring_->take_all<regs::BarrierCpl>();
    EXPECT_EQ(ends.size(), 1u);
    if (ends.empty()) {
      return {};
    }
    EXPECT_EQ(code_of(ends[0].status), status);
    return ends[0];
  }
  void expect_no_end() { EXPECT_TRUE(ring_->take_all<regs::BarrierCpl>().empty()); }
  [[nodiscard]] static uint32_t place_of(const regs::BarrierCpl& cpl) {
    using Where = regs::barrier_cpl::Where;
    return 2 * Where::round.get(cpl.where) + Where::peer.get(cpl.where);
  }
  /// A counter of queue pair 0's block.
  uint32_t count(uint32_t (*word)(uint32_t)) {
    card().run();
    return card().read32(word(0));
  }

  using Status = regs::Status;
  std::unique_ptr<TestRing> ring_;
  std::vector<Packet> notices_;
  std::vector<Packet> answers_;
  uint8_t next_tid_ = 1;
};

}  // namespace rio::test
