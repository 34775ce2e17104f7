/// @file
/// A bus with an emulated card on it: the only place where driver and model meet.
#pragma once

#include <memory>
#include <string>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/emu/emu_memory.hpp"

namespace rio::model {
class Card;
}

namespace rio::pmd {

/// Who lets the card work.
enum class Stepping : uint8_t {
  kInline,  ///< each burst steps it (any thread; one at a time)
  kThread,  ///< a thread of its own; bursts do nothing
  kManual,  ///< the test, tick by tick
};

/// How to make an emulated card.
struct EmuConfig {
  /// "loop": wired to itself. Any other name: two cards of this process that give the same name
  /// are wired to each other; a third is refused.
  std::string wire = "loop";
  /// Not empty: a topology file (docs/fabric.md). The card is at its endpoint `at` instead of on a
  /// wire. Cards of this process that name the same file are in the same fabric.
  std::string topology{};
  std::string at{};
  /// Not empty: a fabric that processes of this user share, joined by this name. The wire's name
  /// does not count then. destIDs are `id` and those behind it, one for each queue pair; 0: the
  /// lowest free ones. With a `board`, these are the destIDs of a board of `queue_pairs` queue
  /// pairs, of which the card is one, `board_pair`.
  std::string fabric{};
  /// Not empty: a relay of this user's, joined by this name, from its board `relay_board`. destIDs
  /// as in a fabric.
  std::string relay{};
  uint32_t relay_board = ~0u;  ///< from 0; all ones: the emptiest board
  uint32_t id = 0;
  /// Not 0, in a fabric of processes, without a `board`: `id` is a wish. Where it is taken the card
  /// gets the next free destIDs, by such steps.
  uint32_t id_step = 0;
  std::string board{};
  uint32_t board_pair = 0;
  bool pull = true;  ///< long messages are copied once, straight out of the sender's process
  /// Not empty: a fabric of machines, joined by this name, over UDP. `id` is the first destID then.
  std::string udp_fabric{};
  std::string members{};     ///< a file that says who is in it, and where
  std::string bind{};        ///< address or interface; empty: of the first that others can reach
  uint16_t port = 0;         ///< 0: any
  uint32_t patience_s = 30;  ///< silence after which a peer is taken for dead
  uint64_t loss_seed = 0;
  double loss_rate = 0.0;    ///< chance of each datagram to be lost, doubled or late, 0 to 1
  uint32_t queue_pairs = 1;  ///< 1 to 31
  Stepping stepping = Stepping::kInline;
  bool exact = false;  ///< segment by segment; set by faults and pcie_seed, too
  bool quirks = true;  ///< the two landing quirks of [S0]
  uint64_t fault_seed = 0;
  double fault_rate = 0.0;  ///< chance of a fault for each chance that it has, 0 to 1
  uint64_t pcie_seed = 0;   ///< not 0: the PCIe layer delays and reorders by this seed
};

/// Owns the card, its BAR, and its end of the wire.
class EmuBus final : public Bus {
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
  [[nodiscard]] PollHook poll_hook(uint32_t qp) override;
  [[nodiscard]] PollHook receive_hook(uint32_t qp) override;
  [[nodiscard]] PollHook send_hook(uint32_t qp) override;
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
