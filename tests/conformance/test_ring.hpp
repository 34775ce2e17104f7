/// @file
/// A ring driven by hand through the register map: the host's part in docs/card.md, and no more.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "fpga/regs/gen/rio_regs.hpp"
#include "tests/conformance/card_under_test.hpp"
#include "tests/support/push_slot.hpp"

namespace rio::test {

/// Sizes of a ring's entries; 0: the ring has none.
struct EntrySizes {
  uint32_t entry;
  uint32_t completion;
};

[[nodiscard]] inline EntrySizes entry_sizes(uint32_t ring) {
  switch (static_cast<regs::Ring>(ring)) {
    case regs::Ring::kTx:
      return {32, 16};
    case regs::Ring::kShared:
      return {8, 32};
    case regs::Ring::kDoorbell:
      return {0, 16};
    case regs::Ring::kEvent:
      return {0, 32};
    case regs::Ring::kDma:
    case regs::Ring::kMaint:
      return {32, 16};
    case regs::Ring::kBarrier:
      return {256, 16};
    default:
      return {16, 16};
  }
}

struct RingConfig {
  uint32_t qp = 0;
  uint32_t ring = 0;
  uint32_t log2 = 4;
  uint32_t clog2 = 0;  ///< 0: as log2
  uint32_t start = 0;
  uint32_t source = 0;  ///< dedicated
  uint32_t mbox = 0;    ///< dedicated
  uint32_t arm = 0;     ///< ARM at the start
  uint32_t format = 0;  ///< RING_FORMAT
  bool irq = false;
  uint32_t vector = 0;
  uint32_t moderation_us = 0;
};

/// State, error and generation of RING_STATUS.
struct RingStatus {
  regs::RingState state;
  regs::RingError error;
  uint32_t gen;
  uint32_t entry;
};

class TestRing {
 public:
  TestRing(FunctionUnderTest& card, const RingConfig& config) : card_(card), config_(config) {
    if (config_.clog2 == 0) {
      config_.clog2 = config_.log2;
    }
    EntrySizes sizes = entry_sizes(config_.ring);
    if (config_.ring == 1 && regs::qp::RingFormat::completion.get(config_.format) != 0) {
      sizes.completion = 16;
    }
    entry_bytes_ = sizes.entry;
    completion_bytes_ = sizes.completion;
    entries = card.map(std::max<size_t>(64, static_cast<size_t>(entry_bytes_) << config_.log2));
    completions = card.map(static_cast<size_t>(completion_bytes_) << config_.clog2);
  }

  /// Writes the ring's words and asks for a start, without waiting for the result.
  void request_start() {
    namespace qp = regs::qp;
    const uint32_t q = config_.qp;
    const uint32_t r = config_.ring;
    head = tail = cidx = config_.start;
    forget_completions();
    card_.write32(qp::ring_base_lo(q, r), static_cast<uint32_t>(entries.iova));
    card_.write32(qp::ring_base_hi(q, r), static_cast<uint32_t>(entries.iova >> 32));
    card_.write32(qp::ring_cbase_lo(q, r), static_cast<uint32_t>(completions.iova));
    card_.write32(qp::ring_cbase_hi(q, r), static_cast<uint32_t>(completions.iova >> 32));
    card_.write32(qp::ring_size(q, r),
                  qp::RingSize::log2.put(config_.log2) | qp::RingSize::clog2.put(config_.clog2));
    card_.write32(qp::ring_start(q, r), config_.start);
    card_.write32(qp::ring_irq(q, r), qp::RingIrq::vector.put(config_.vector) |
                                          qp::RingIrq::enable.put(config_.irq) |
                                          qp::RingIrq::moderation_us.put(config_.moderation_us));
    card_.write32(qp::ring_filter(q, r), qp::RingFilter::mbox.put(config_.mbox));
    card_.write32(qp::ring_source(q, r), config_.source);
    card_.write32(qp::ring_format(q, r), config_.format);
    // A completion-only ring starts with all entries free.
    tail = config_.start + (entry_bytes_ == 0 ? 1u << config_.clog2 : 0);
    card_.write32(qp::tail(q, r), tail);
    for (uint32_t at = 0; qp::RingFormat::push.get(config_.format) != 0 && at < 64u << 8; at += 4) {
      card_.write32(qp::base(q) + regs::kPushSlotsAt + at, 0);
    }
    slots_used = 0;
    arms_ = 0;
    card_.write32(qp::arm(q, r), config_.arm);
    control(true);
  }
  void start() {
    request_start();
    card_.run();
    ASSERT_EQ(status().state, regs::RingState::kRunning)
        << "ring " << config_.ring << " error " << static_cast<int>(status().error);
    ASSERT_EQ(status().gen, gen_);
  }
  void request_stop() { control(false); }
  void stop() {
    request_stop();
    card_.run();
    ASSERT_EQ(status().state, regs::RingState::kStopped);
    ASSERT_EQ(status().gen, gen_);
  }

  [[nodiscard]] RingStatus status() const {
    namespace qp = regs::qp;
    const uint32_t word = card_.read32(qp::ring_status(config_.qp, config_.ring));
    return {static_cast<regs::RingState>(qp::RingStatus::state.get(word)),
            static_cast<regs::RingError>(qp::RingStatus::error.get(word)),
            qp::RingStatus::gen.get(word),
            card_.read32(qp::ring_status(config_.qp, config_.ring) + 4)};
  }

  /// Writes an entry, which the card sees after post().
  template <class Desc>
  void put(const Desc& desc) {
    static_assert(sizeof(Desc) <= 256);
    const uint32_t mask = (1u << config_.log2) - 1;
    std::memcpy(entries.va + static_cast<size_t>(tail & mask) * entry_bytes_, &desc, sizeof(desc));
    ++tail;
  }
  /// A word of a slot.
  struct SlotWord {
    uint32_t offset;
    uint32_t value;
  };
  /// Writes an entry of one or two units, marks it, and takes the next slot for it. @param second
  /// up to 28 bytes of a second unit. @return the words of the slot, which the test writes.
  [[nodiscard]] std::vector<SlotWord> push(regs::TxDesc desc, uint32_t slots_log2,
                                           const std::vector<uint8_t>& second = {}) {
    desc.control |= regs::tx_desc::Control::pushed.put(1) |
                    regs::tx_desc::Control::units.put(second.empty() ? 0 : 1);
    std::array<uint32_t, 15> entry{};
    std::memcpy(entry.data(), &desc, sizeof desc);
    if (!second.empty()) {
      std::memcpy(entry.data() + 8, second.data(), second.size());
    }
    const uint32_t at = regs::qp::base(config_.qp) + regs::kPushSlotsAt +
                        (slots_used & ((1u << slots_log2) - 1)) * 64;
    std::vector<SlotWord> words;
    for (const uint32_t word : slot_words(entry, tail, slots_used, slots_log2)) {
      words.push_back({at + 4 * static_cast<uint32_t>(words.size()), word});
    }
    ++slots_used;
    put(desc);
    if (!second.empty()) {
      regs::TxWide wide{};
      std::memcpy(static_cast<void*>(&wide), second.data(), second.size());
      put(wide);
    }
    return words;
  }
  void post() { card_.write32(regs::qp::tail(config_.qp, config_.ring), tail); }

  /// Gets the next completion, if its phase is that of this lap.
  template <class Cpl>
  [[nodiscard]] bool take(Cpl* out) {
    const uint32_t mask = (1u << config_.clog2) - 1;
    const uint8_t* at = completions.va + static_cast<size_t>(cidx & mask) * sizeof(Cpl);
    uint32_t last = 0;
    std::memcpy(&last, at + sizeof(Cpl) - 4, 4);
    const uint32_t phase = ~(cidx >> config_.clog2) & 1;
    if (last >> 31 != phase) {
      return false;
    }
    std::memcpy(out, at, sizeof(Cpl));
    ++cidx;
    return true;
  }
  /// Lets the card work, then takes all completions.
  template <class Cpl>
  [[nodiscard]] std::vector<Cpl> take_all() {
    card_.run();
    std::vector<Cpl> all;
    for (Cpl cpl; take(&cpl);) {
      all.push_back(cpl);
    }
    return all;
  }
  /// Asks for an interrupt once there are completions that were not taken.
  void arm() {
    card_.write32(regs::qp::arm(config_.qp, config_.ring),
                  regs::qp::Arm::index.put(cidx) | regs::qp::Arm::seq.put(++arms_));
  }
  /// Frees the entries that were taken from a completion-only ring.
  void give_back() {
    tail = cidx + (1u << config_.clog2);
    post();
  }

  RingConfig& config() { return config_; }
  [[nodiscard]] uint32_t gen() const { return gen_; }

  Memory entries;
  Memory completions;
  uint32_t head = 0;
  uint32_t tail = 0;
  uint32_t cidx = 0;
  uint32_t slots_used = 0;

 private:
  /// Makes all completions look old: those from START on get the phase of the lap before; those
  /// before START, which come a lap later, the phase of this one.
  void forget_completions() {
    const uint32_t mask = (1u << config_.clog2) - 1;
    const bool odd = (config_.start >> config_.clog2 & 1) != 0;
    const size_t first = static_cast<size_t>(config_.start & mask) * completion_bytes_;
    std::memset(completions.va, odd ? 0 : 0xFF, first);
    std::memset(completions.va + first, odd ? 0xFF : 0, completions.len_bytes - first);
  }
  void control(bool run) {
    namespace qp = regs::qp;
    const uint32_t at = qp::ring_control(config_.qp, config_.ring);
    gen_ = (qp::RingControl::gen.get(card_.read32(at)) + 1) & 0xFFFF;
    card_.write32(at, qp::RingControl::gen.put(gen_) | qp::RingControl::run.put(run));
  }

  FunctionUnderTest& card_;
  RingConfig config_;
  uint32_t entry_bytes_ = 0;
  uint32_t completion_bytes_ = 0;
  uint32_t gen_ = 0;
  uint32_t arms_ = 0;
};

[[nodiscard]] inline regs::Status code_of(uint32_t status) {
  return static_cast<regs::Status>(status & 0xFF);
}
[[nodiscard]] inline uint32_t retries_of(uint32_t status) {
  return status >> 8 & 0xFF;
}

}  // namespace rio::test
