/// @file
/// What all model cards under test have in common: their functions, each with a BAR and memory.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/model/host_memory.hpp"
#include "tests/conformance/card_under_test.hpp"

namespace rio::test {

struct alignas(4096) Page {
  uint8_t bytes[4096];
};

class IrqCounter final : public model::IrqSink {
 public:
  void raise(uint32_t vector) override { ++raised[vector & 255]; }
  uint32_t raised[256] = {};
};

/// The ends of one function of a model card.
class ModelFunction final : public FunctionUnderTest {
 public:
  ModelFunction(uint32_t queue_pairs, CardUnderTest& card)
      : card_(card), bar_(model::Card::bar_bytes(queue_pairs) / sizeof(Page)) {}

  [[nodiscard]] model::FunctionEnds ends(bool interrupts) {
    return {reinterpret_cast<uint8_t*>(bar_.data()), &table_, interrupts ? &irqs_ : nullptr};
  }
  uint32_t read32(uint32_t offset) override {
    return __atomic_load_n(word(offset), __ATOMIC_ACQUIRE);
  }
  void write32(uint32_t offset, uint32_t value) override {
    __atomic_store_n(word(offset), value, __ATOMIC_RELEASE);
  }
  Memory map(size_t len_bytes) override {
    constexpr uint64_t kGuard = 0x10'0000;  // an unmapped range between any two pieces of memory
    const size_t pages = (len_bytes + sizeof(Page) - 1) / sizeof(Page);
    auto& block = blocks_.emplace_back(std::make_unique<Page[]>(pages));
    const Memory memory{reinterpret_cast<uint8_t*>(block.get()), next_iova_, len_bytes};
    next_iova_ += pages * sizeof(Page) + kGuard;
    EXPECT_EQ(table_.add({memory.iova, len_bytes, memory.va}), 0);
    return memory;
  }
  void unmap(const Memory& memory) override { EXPECT_EQ(table_.remove(memory.iova), 0); }
  uint64_t refused_accesses() override { return card_.refused_accesses(); }
  uint32_t interrupts(uint32_t vector) override { return std::exchange(irqs_.raised[vector], 0); }
  void run() override { card_.run(); }

 private:
  uint32_t* word(uint32_t offset) { return reinterpret_cast<uint32_t*>(bar_.data()) + offset / 4; }

  CardUnderTest& card_;
  std::vector<Page> bar_;
  model::DmaTable table_;
  IrqCounter irqs_;
  std::vector<std::unique_ptr<Page[]>> blocks_;
  uint64_t next_iova_ = 0x7'0000'0000;
};

/// A model card. The class that derives from it gives it a clock and a wire, and resets `card_`
/// before these go.
class ModelUnderTest : public CardUnderTest {
 public:
  FunctionUnderTest& vf(uint32_t number) override { return vfs_[number]; }
  uint32_t read32(uint32_t offset) override { return physical_.read32(offset); }
  void write32(uint32_t offset, uint32_t value) override { physical_.write32(offset, value); }
  Memory map(size_t len_bytes) override { return physical_.map(len_bytes); }
  void unmap(const Memory& memory) override { physical_.unmap(memory); }
  uint64_t refused_accesses() override { return card_->statistics().refused; }
  uint32_t interrupts(uint32_t vector) override { return physical_.interrupts(vector); }
  void work() override { card_->step(); }
  void set_link(bool up) override { card_->set_link(up); }
  void lose_state() override { card_->lose_state(); }
  void vanish() override { card_->vanish(); }

 protected:
  explicit ModelUnderTest(uint32_t queue_pairs) : physical_(queue_pairs, *this) {}
  void create(const model::Config& config, bool interrupts, model::Clock* clock,
              std::unique_ptr<model::Wire> wire) {
    model::Ends ends;
    static_cast<model::FunctionEnds&>(ends) = physical_.ends(interrupts);
    for (uint32_t i = 0; i < config.vfs; ++i) {
      ends.vfs.push_back(vfs_.emplace_back(config.queue_pairs, *this).ends(true));
    }
    ends.clock = clock;
    ends.wire = std::move(wire);
    EXPECT_EQ(model::Card::create(config, std::move(ends), &card_), 0);
  }

  ModelFunction physical_;
  std::deque<ModelFunction> vfs_;
  std::unique_ptr<model::Card> card_;
};

}  // namespace rio::test
