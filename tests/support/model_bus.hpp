/// @file
/// The driver's bus onto a model card whose time a test moves: like EmuBus, but deterministic and
/// with every setting of the model.
#pragma once

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/model/host_memory.hpp"
#include "pmd/bus/bus.hpp"
#include "tests/support/manual_clock.hpp"

namespace rio::test {

/// A card that sends segment by segment, as hardware does.
[[nodiscard]] inline model::Config exact_card() {
  model::Config config;
  config.exact = true;
  return config;
}

class ModelBus : public pmd::Bus, public pmd::Emulation {
 public:
  /// @param clock advances by `tick_ns` with each step, and outlives the bus.
  ModelBus(const model::Config& config, std::unique_ptr<model::Wire> wire, StepClock* clock,
           uint64_t tick_ns)
      : bar_(model::Card::bar_bytes(config.queue_pairs) / sizeof(Page)),
        clock_(clock),
        tick_ns_(tick_ns) {
    model::Ends ends;
    ends.bar = reinterpret_cast<uint8_t*>(bar_.data());
    ends.memory = &table_;
    ends.clock = clock;
    ends.wire = std::move(wire);
    if (model::Card::create(config, std::move(ends), &card_) != 0) {
      card_ = nullptr;
    }
  }

  [[nodiscard]] pmd::Mmio bar() override {
    return {reinterpret_cast<uint8_t*>(bar_.data()), bar_.size() * sizeof(Page)};
  }
  [[nodiscard]] pmd::Emulation& emulation() override { return *this; }
  [[nodiscard]] int numa_node() const override { return numa_node_; }
  void set_numa_node(int node) { numa_node_ = node; }
  [[nodiscard]] pmd::PollHook step_hook(uint32_t /*qp*/) override {
    return {&ModelBus::step, this};
  }
  [[nodiscard]] pmd::PollHook step_to_receive_hook(uint32_t /*qp*/) override {
    return {&ModelBus::step_to_receive, this};
  }
  [[nodiscard]] int dma_alloc(size_t len_bytes, size_t /*align_bytes*/,
                              pmd::DmaMemory* out) override {
    const size_t pages = (len_bytes + sizeof(Page) - 1) / sizeof(Page);
    auto block = std::make_unique<Page[]>(pages);
    const uint64_t iova = next_iova_;
    next_iova_ += (pages + 16) * sizeof(Page);
    if (const int rc = table_.add({iova, len_bytes, reinterpret_cast<uint8_t*>(block.get())});
        rc != 0) {
      return rc;
    }
    *out = {reinterpret_cast<uint8_t*>(block.get()), iova, len_bytes};
    blocks_[iova] = std::move(block);
    return 0;
  }
  void dma_free(const pmd::DmaMemory& memory) override {
    static_cast<void>(table_.remove(memory.iova));
    blocks_.erase(memory.iova);
  }
  [[nodiscard]] int dma_map(void* va, size_t len_bytes, std::vector<pmd::IovaRun>* runs) override {
    const uint64_t iova = next_iova_;
    next_iova_ += len_bytes + 16 * sizeof(Page);
    if (const int rc = table_.add({iova, len_bytes, static_cast<uint8_t*>(va)}); rc != 0) {
      return rc;
    }
    mapped_[va] = iova;
    *runs = {{va, iova, len_bytes}};
    return 0;
  }
  [[nodiscard]] int dma_unmap(void* va, size_t /*len_bytes*/) override {
    const auto it = mapped_.find(va);
    if (it == mapped_.end()) {
      return -ENOENT;
    }
    const int rc = table_.remove(it->second);
    mapped_.erase(it);
    return rc;
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

  /// The memory at a bus address; null: there is none.
  [[nodiscard]] uint8_t* at(uint64_t iova) {
    model::HostWindow window;
    return table_.find(iova, &window) ? window.at(iova) : nullptr;
  }
  [[nodiscard]] model::Card& card() { return *card_; }
  [[nodiscard]] bool ok() const { return card_ != nullptr; }

 private:
  struct alignas(4096) Page {
    uint8_t bytes[4096];
  };
  static void step(void* ctx) noexcept {
    auto* self = static_cast<ModelBus*>(ctx);
    self->clock_->advance_ns(self->tick_ns_);
    self->card_->step();
  }
  static void step_to_receive(void* ctx) noexcept {
    auto* self = static_cast<ModelBus*>(ctx);
    self->clock_->advance_ns(self->tick_ns_);
    self->card_->step_to_receive();
  }

  std::vector<Page> bar_;
  model::DmaTable table_;
  int numa_node_ = -1;
  StepClock* clock_;
  uint64_t tick_ns_;
  uint64_t next_iova_ = 1ull << 40;
  std::map<uint64_t, std::unique_ptr<Page[]>> blocks_;
  std::map<void*, uint64_t> mapped_;
  std::string name_ = "model";
  std::unique_ptr<model::Card> card_;
};

}  // namespace rio::test
