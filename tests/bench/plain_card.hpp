/// @file
/// The minimum that a driver's queue runs on: memory in place of a BAR, and completions that the
/// benchmark writes between its measurements. So the benchmark measures the driver's own cost,
/// without a model's.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/bus.hpp"
#include "tests/support/caps.hpp"

namespace rio::bench {

/// Queue pair 0 alone. Bus addresses are the pointers.
class PlainCard final : public pmd::Bus, public pmd::Emulation {
 public:
  PlainCard() : bar_(kBarBytes / sizeof(uint32_t)) { word(regs::qp::rings(0)) = 0xFFFF; }
  ~PlainCard() override {
    for (void* memory : memories_) {
      std::free(memory);
    }
  }

  [[nodiscard]] pmd::Mmio bar() override { return {bar_.data(), kBarBytes}; }
  [[nodiscard]] pmd::Emulation& emulation() override { return *this; }
  /// Answers starts and stops until ready() is called; afterwards it costs only a call and a
  /// branch.
  [[nodiscard]] pmd::PollHook step_hook(uint32_t /*qp*/) override {
    return {[](void* self) noexcept {
              auto* const card = static_cast<PlainCard*>(self);
              if (card->answers_) [[unlikely]] {
                card->answer();
              }
            },
            this};
  }
  [[nodiscard]] int dma_alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out) override {
    const size_t rounded = (len_bytes + align_bytes - 1) / align_bytes * align_bytes;
    void* const va = std::aligned_alloc(align_bytes, rounded);
    if (va == nullptr) {
      return -ENOMEM;
    }
    std::memset(va, 0, rounded);
    memories_.push_back(va);
    *out = {va, reinterpret_cast<uint64_t>(va), len_bytes};
    return 0;
  }
  void dma_free(const pmd::DmaMemory& /*memory*/) override {}
  [[nodiscard]] const std::string& name() const override { return name_; }

  /// The rings are started: the hook does nothing until stopping() is called.
  void ready() { answers_ = false; }
  void stopping() { answers_ = true; }

  /// Completes `count` entries of a ring, from index `from` on, in order and with kOk.
  /// @param rest writes what is not zero before the last word of a completion: (completion, index).
  template <class Cpl, class Rest>
  void complete(regs::Ring ring, uint32_t from, uint32_t count, Rest&& rest) {
    const auto number = static_cast<uint32_t>(ring);
    const uint64_t base = uint64_t{word(regs::qp::ring_cbase_hi(0, number))} << 32 |
                          word(regs::qp::ring_cbase_lo(0, number));
    const uint32_t log2 = regs::qp::RingSize::clog2.get(word(regs::qp::ring_size(0, number)));
    auto* const ring_memory = reinterpret_cast<Cpl*>(base);
    for (uint32_t index = from; index != from + count; ++index) {
      Cpl cpl{};
      rest(&cpl, index);
      cpl.status = regs::tx_cpl::Status::phase.put((~(index >> log2)) & 1u);
      ring_memory[index & ((1u << log2) - 1)] = cpl;
    }
  }

 private:
  static constexpr size_t kBarBytes = 2 * regs::kQpStrideBytes;

  uint32_t& word(uint32_t offset_bytes) { return bar_[offset_bytes / sizeof(uint32_t)]; }
  void answer() {
    for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
      word(regs::qp::ring_status(0, ring)) = word(regs::qp::ring_control(0, ring));
    }
  }

  std::vector<uint32_t> bar_;
  std::vector<void*> memories_;
  std::string name_ = "plain:0";
  bool answers_ = true;
};

}  // namespace rio::bench
