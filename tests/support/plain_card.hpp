/// @file
/// The minimum that a driver's queue runs on: memory in place of a BAR, and completions that a test
/// or a benchmark writes. A benchmark measures the driver's own cost on it, without a model's.
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

namespace rio::test {

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
  /// @param rest writes what is not zero, but for the phase: (completion, index).
  template <class Cpl, class Rest>
  void complete(regs::Ring ring, uint32_t from, uint32_t count, Rest&& rest) {
    const Completions<Cpl> all = completions<Cpl>(ring);
    for (uint32_t index = from; index != from + count; ++index) {
      Cpl cpl{};
      rest(&cpl, index);
      cpl.status |= regs::tx_cpl::Status::phase.put((~(index / all.count)) & 1u);
      all.first[index % all.count] = cpl;
    }
  }

  /// The first entry of a ring that has started.
  template <class Desc>
  [[nodiscard]] const Desc* entries(regs::Ring ring) {
    const auto number = static_cast<uint32_t>(ring);
    return reinterpret_cast<const Desc*>(
        join(regs::qp::ring_base_hi(0, number), regs::qp::ring_base_lo(0, number)));
  }
  /// The completions of a ring that has started.
  template <class Cpl>
  struct Completions {
    Cpl* first;
    uint32_t count;
  };
  template <class Cpl>
  [[nodiscard]] Completions<Cpl> completions(regs::Ring ring) {
    const auto number = static_cast<uint32_t>(ring);
    const uint64_t base =
        join(regs::qp::ring_cbase_hi(0, number), regs::qp::ring_cbase_lo(0, number));
    const uint32_t log2 = regs::qp::RingSize::clog2.get(word(regs::qp::ring_size(0, number)));
    return {reinterpret_cast<Cpl*>(base), 1u << log2};
  }
  /// The tail of a ring, as the doorbell left it.
  [[nodiscard]] uint32_t tail(regs::Ring ring) {
    return word(regs::qp::tail(0, static_cast<uint32_t>(ring)));
  }

 private:
  static constexpr size_t kBarBytes = 2 * regs::kQpStrideBytes;

  uint64_t join(uint32_t high, uint32_t low) { return uint64_t{word(high)} << 32 | word(low); }

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

}  // namespace rio::test
