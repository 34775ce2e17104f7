/// @file
/// A bus with memory and a tapped BAR, and no card: the test plays the card.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"

namespace rio::test {

/// Bus addresses differ from pointers and are equal in every run: the first allocation has
/// kFirstIova, each further one the next multiple of kIovaStep.
class FakeBus final : public pmd::Bus, public pmd::Emulation {
 public:
  static constexpr uint64_t kFirstIova = 0x12'3400'0000;
  static constexpr uint64_t kIovaStep = 0x10'0000;

  /// @param tap gets all accesses to the BAR and outlives the bus.
  explicit FakeBus(pmd::MmioTap* tap, size_t bar_len_bytes = 2 << 20)
      : tap_(tap), bar_len_bytes_(bar_len_bytes) {}

  ~FakeBus() override {
    for (const Block& block : blocks_) {
      std::free(block.memory.va);
    }
  }

  [[nodiscard]] pmd::Mmio bar() override { return {tap_, bar_len_bytes_}; }
  [[nodiscard]] pmd::Emulation& emulation() override { return *this; }
  [[nodiscard]] int start_dma() override { return on_start_dma ? on_start_dma() : 0; }
  [[nodiscard]] pmd::PollHook step_hook(uint32_t /*qp*/) override {
    return {[](void* self) noexcept { static_cast<FakeBus*>(self)->polled(); }, this};
  }

  [[nodiscard]] int dma_alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out) override {
    if (allocs_until_failure == 0) {
      return -ENOMEM;
    }
    --allocs_until_failure;
    const size_t rounded = (len_bytes + align_bytes - 1) / align_bytes * align_bytes;
    void* const va = std::aligned_alloc(align_bytes, rounded);
    if (va == nullptr) {
      return -ENOMEM;
    }
    std::memset(va, 0, rounded);
    *out = {va, kFirstIova + blocks_.size() * kIovaStep, len_bytes};
    blocks_.push_back({*out, true});
    return 0;
  }
  /// Keeps the memory until the end, so that the test may read it.
  void dma_free(const pmd::DmaMemory& memory) override {
    for (Block& block : blocks_) {
      if (block.memory.va == memory.va) {
        block.live = false;
      }
    }
  }
  [[nodiscard]] void* shared_alloc(size_t len_bytes, size_t align_bytes) override {
    if (shared_until_failure == 0) {
      return nullptr;
    }
    --shared_until_failure;
    void* const memory = pmd::own_alloc(len_bytes, align_bytes);
    shared_[memory] = len_bytes;
    return memory;
  }
  void shared_free(void* memory) override {
    EXPECT_EQ(shared_.erase(memory), memory != nullptr ? 1u : 0u) << "not of shared_alloc()";
    std::free(memory);
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

  /// Allocation `i`, in order.
  [[nodiscard]] uint8_t* memory(size_t i) const {
    return static_cast<uint8_t*>(blocks_.at(i).memory.va);
  }
  [[nodiscard]] size_t live_blocks() const {
    size_t count = 0;
    for (const Block& block : blocks_) {
      count += block.live ? 1 : 0;
    }
    return count;
  }

  /// Allocations of shared_alloc() that were not freed.
  [[nodiscard]] size_t live_shared() const { return shared_.size(); }
  /// Whether a range lies within one such allocation.
  [[nodiscard]] bool is_shared(const void* at, size_t len_bytes) const {
    const auto* const first = static_cast<const uint8_t*>(at);
    return std::ranges::any_of(shared_, [&](const auto& piece) {
      const auto* const begin = static_cast<const uint8_t*>(piece.first);
      return first >= begin && first + len_bytes <= begin + piece.second;
    });
  }

  /// Called by the poll hook.
  std::function<void()> on_poll;
  std::function<int()> on_start_dma;
  uint64_t polls = 0;
  /// Allocations that succeed before one fails.
  uint64_t allocs_until_failure = ~uint64_t{0};
  uint64_t shared_until_failure =
      ~uint64_t{0};  ///< shared_alloc() calls that succeed before one fails

 private:
  struct Block {
    pmd::DmaMemory memory;
    bool live;
  };
  void polled() {
    ++polls;
    if (on_poll) {
      on_poll();
    }
  }

  pmd::MmioTap* tap_;
  size_t bar_len_bytes_;
  std::vector<Block> blocks_;
  std::map<void*, size_t> shared_;
  std::string name_ = "fake:0";
};

}  // namespace rio::test
