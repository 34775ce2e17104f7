/// @file
/// One raw device: a card, its bus, and the queue pairs that this process owns.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_irq.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/raw/devargs.hpp"
#include "pmd/raw/rte_raw_rio.h"
#include "pmd/raw/shared_card.hpp"

namespace rio::pmd {

/// A card that a probe has found, with all that differs between kinds of cards.
struct FoundCard {
  std::unique_ptr<Bus> bus;
  SharedCard shared;        ///< has a number in the primary, is attached in a secondary
  std::string wire;         ///< of an emulated card, else ""
  DmaMemory bar{};          ///< where secondaries find it; empty: EAL tells them
  bool works_alone = true;  ///< also when the primary does not poll
};

/// Rings of a queue pair that have counters of their own; the dedicated ones are summed.
inline constexpr std::array<const char*, 6> kCountedRings = {"tx",  "shared", "doorbell",
                                                             "dma", "event",  "dedicated"};
using QueueTotals = std::array<RingTotals, kCountedRings.size()>;

/// Taken by everything but enqueue and dequeue: rawdev functions, telemetry, and hot-plug come from
/// different threads.
[[nodiscard]] std::recursive_mutex& control_lock();

/// Control path, under control_lock(). Functions return 0 or -errno; the cause is logged.
class RawDevice {
 public:
  /// Put a card into operation in the primary process; use it in a secondary.
  [[nodiscard]] static int create(const std::string& name, const RawArgs& args, FoundCard found,
                                  std::unique_ptr<RawDevice>* out);
  /// Stops and frees everything.
  ~RawDevice();

  /// Claim a queue pair for this process. @param conf null: the default.
  [[nodiscard]] int setup_queue(uint32_t qp, const rte_raw_rio_queue_conf* conf);
  [[nodiscard]] int release_queue(uint32_t qp);
  /// Open all claimed queue pairs; all or none.
  [[nodiscard]] int start();
  /// Close them; claims stay.
  void stop();
  /// Reset the card. Queue pairs of this process are closed and opened anew; -EBUSY if another
  /// process has one.
  [[nodiscard]] int reset();
  [[nodiscard]] int configure(const rte_raw_rio_config& config);
  /// Address of external memory (rte_dev_dma_map), where the bus does not choose it.
  [[nodiscard]] int dma_map(void* va, uint64_t iova, size_t len_bytes);
  [[nodiscard]] int dma_unmap(void* va, size_t len_bytes);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Bus& bus() { return *bus_; }
  /// Null: the last reset failed.
  [[nodiscard]] Card* card() { return card_.get(); }
  /// Name of the wire of an emulated card, else "".
  [[nodiscard]] const std::string& wire() const { return wire_; }
  [[nodiscard]] SharedCard& shared() { return shared_; }
  [[nodiscard]] uint32_t queue_pairs() const { return static_cast<uint32_t>(queues_.size()); }
  /// Let an emulated card work a little, where nobody else steps it, so that its registers are of
  /// now. Nothing on PCI.
  void let_work();
  /// let_work() until the link is up. @return false: it is not, after `timeout_ms`.
  [[nodiscard]] bool wait_link(uint32_t timeout_ms);
  /// The device of this process at the other end of the wire: itself on a loop and on PCI. Null:
  /// none.
  [[nodiscard]] RawDevice* peer();
  [[nodiscard]] bool is_primary() const { return primary_; }
  [[nodiscard]] bool started() const { return started_; }
  /// Null: not open in this process.
  [[nodiscard]] QueuePair* queue_pair(uint32_t qp);
  /// Interrupts of an open queue pair.
  [[nodiscard]] const QueueIrq& irq(uint32_t qp) const { return queues_[qp].irq; }
  [[nodiscard]] bool claimed(uint32_t qp) const;
  [[nodiscard]] rte_raw_rio_queue_conf queue_conf(uint32_t qp) const;
  [[nodiscard]] QueueTotals totals(uint32_t qp);
  /// Seed and rate that the fault injector of an emulated card has; see raw_set_faults().
  [[nodiscard]] int set_faults(uint64_t seed, double rate);
  [[nodiscard]] uint64_t fault_seed() const { return args_.emu.fault_seed; }
  [[nodiscard]] double fault_rate() const { return args_.emu.fault_rate; }

  /// How often raw_hold() was called and not taken back.
  uint32_t holders = 0;
  /// Counts at the last reset of xstats, by their numbers; see xstats.cc.
  std::vector<uint64_t> xstats_zero;

 private:
  struct Queue {
    bool claimed = false;
    rte_raw_rio_queue_conf conf{};
    std::unique_ptr<QueuePair> pair;
    QueueIrq irq;
    QueueTotals past{};  // of pairs closed since
  };

  RawDevice(std::string name, RawArgs args, FoundCard found);
  [[nodiscard]] int take_over(const DmaMemory& bar, bool works_alone);
  [[nodiscard]] int join();
  [[nodiscard]] int open_card(uint32_t queue_pairs);
  [[nodiscard]] int check_rings() const;
  [[nodiscard]] int claim_rest(std::vector<uint32_t>* taken);
  [[nodiscard]] int open_queue(uint32_t qp);
  void close_queue(uint32_t qp);
  [[nodiscard]] rte_raw_rio_queue_conf default_conf() const;
  [[nodiscard]] int check_conf(uint32_t qp, const rte_raw_rio_queue_conf& conf);

  std::string name_;
  std::string wire_;
  RawArgs args_;
  bool primary_ = true;
  bool started_ = false;
  std::unique_ptr<Bus> bus_;
  SharedCard shared_;
  std::unique_ptr<Card> card_;
  std::vector<Queue> queues_;
};

/// Device of a rawdev number. Null: none, of another driver, or closed.
[[nodiscard]] RawDevice* find_device(uint16_t dev_id);
/// Numbers of all raw devices of this driver.
[[nodiscard]] std::vector<uint16_t> device_ids();

}  // namespace rio::pmd
