/// @file
/// A bus with an emulated card on it: the only place where driver and model meet.
#pragma once

#include <memory>
#include <string>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/emu/emu_config.hpp"
#include "pmd/bus/emu/emu_memory.hpp"

namespace rio::model {
class Card;
}

namespace rio::pmd {

/// Owns the card, its BAR, and its end of the wire.
class EmuBus final : public Bus, public Emulation {
 public:
  /// @param memory null: memory of the process's own.
  /// @return -EINVAL (bad config), -EBUSY (wire has two ends already, a card is at the endpoint,
  /// or has the destID), -ENOENT (no such endpoint), -errno of the topology file or of joining a
  /// fabric, -ENOMEM, -EAGAIN (no thread).
  [[nodiscard]] static int create(const EmuConfig& config, std::shared_ptr<EmuMemory> memory,
                                  std::unique_ptr<EmuBus>* out);
  /// A bus onto a card that another process steps: `bar` is its BAR in memory that both share,
  /// `memory` the same memory. The hook does nothing.
  [[nodiscard]] static int attach(const DmaMemory& bar, std::shared_ptr<EmuMemory> memory,
                                  const std::string& name, std::unique_ptr<EmuBus>* out);
  ~EmuBus() override;

  [[nodiscard]] Mmio bar() override;
  [[nodiscard]] Emulation* emulation() override { return this; }
  [[nodiscard]] PollHook step_hook(uint32_t qp) override;
  [[nodiscard]] PollHook step_to_receive_hook(uint32_t qp) override;
  [[nodiscard]] PollHook step_to_send_hook(uint32_t qp) override;
  [[nodiscard]] int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override;
  void dma_free(const DmaMemory& memory) override;
  [[nodiscard]] void* shared_alloc(size_t len_bytes, size_t align_bytes) override;
  void shared_free(void* memory) override;
  [[nodiscard]] int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  [[nodiscard]] int dma_unmap(void* va, size_t len_bytes) override;
  [[nodiscard]] bool maps_addresses() const override { return true; }
  [[nodiscard]] int dma_map_at(void* va, uint64_t iova, size_t len_bytes) override;
  [[nodiscard]] int irq_fd(uint32_t vector) override;
  [[nodiscard]] bool wakes() const override;
  void before_sleep() override;
  [[nodiscard]] int set_faults(uint64_t seed, double rate) override;
  [[nodiscard]] bool leave_to_others() override;
  [[nodiscard]] std::string address() const override;
  [[nodiscard]] int reach(const std::string& address, uint32_t* dest_id) override;
  [[nodiscard]] int why_unreachable(uint32_t dest_id) override;
  [[nodiscard]] uint32_t dest_id() const override;
  [[nodiscard]] const std::string& name() const override;
  [[nodiscard]] int numa_node() const override;

  /// Null for an attached bus. Thread-safe: step(), inject(); the rest under with_lock().
  [[nodiscard]] model::Card* card();
  /// The BAR's memory, to hand to attach() in another process.
  [[nodiscard]] const DmaMemory& bar_memory() const;

 private:
  struct Impl;
  explicit EmuBus(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rio::pmd
