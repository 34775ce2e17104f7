/// @file
/// One raw device: queue pairs of a card.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "pmd/card/eal_card.hpp"
#include "pmd/dev/queue_irq.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/raw/rte_raw_rio.h"

namespace rio::pmd {

/// Rings of a queue pair that have counters of their own; the dedicated ones are summed.
inline constexpr std::array<const char*, 6> kCountedRings = {"tx",  "shared", "doorbell",
                                                             "dma", "event",  "dedicated"};
using QueueTotals = std::array<RingTotals, kCountedRings.size()>;

/// Control path, under control_lock(). Functions return 0 or -errno; the cause is logged.
class RawDevice final : public CardUser {
 public:
  /// @param name of the device. @param card may have other users.
  RawDevice(std::string name, std::shared_ptr<EalCard> card);
  /// Stops and frees everything.
  ~RawDevice();

  /// Claim a queue pair for this process. @param conf null: the default.
  [[nodiscard]] int setup_queue(uint32_t qp, const rte_raw_rio_queue_conf* conf);
  [[nodiscard]] int release_queue(uint32_t qp);
  /// Open all claimed queue pairs; all or none.
  [[nodiscard]] int start();
  /// Close them; claims stay.
  void stop();
  /// As EalCard::configure().
  [[nodiscard]] int configure(const rte_raw_rio_config& config);

  [[nodiscard]] const std::string& name() const override { return name_; }
  /// A program that resets the card by a raw device has its threads in hand: nothing keeps them
  /// out.
  void before_reset() override;
  [[nodiscard]] int after_reset() override;
  [[nodiscard]] EalCard& eal_card() { return *card_; }
  [[nodiscard]] Bus& bus() { return card_->bus(); }
  /// Null: the last reset failed.
  [[nodiscard]] Card* card() { return card_->card(); }
  [[nodiscard]] const std::string& wire() const { return card_->wire(); }
  [[nodiscard]] uint32_t queue_pairs() const { return static_cast<uint32_t>(queues_.size()); }
  /// The device of this process at the other end of the wire: itself on a loop and on PCI. Null:
  /// none.
  [[nodiscard]] RawDevice* peer();
  [[nodiscard]] bool started() const { return started_; }
  /// Null: not open in this process.
  [[nodiscard]] QueuePair* queue_pair(uint32_t qp);
  /// Interrupts of an open queue pair.
  [[nodiscard]] const QueueIrq& irq(uint32_t qp) const { return queues_[qp].irq; }
  [[nodiscard]] bool claimed(uint32_t qp) const;
  [[nodiscard]] rte_raw_rio_queue_conf queue_conf(uint32_t qp) const;
  [[nodiscard]] QueueTotals totals(uint32_t qp);

  /// How often raw_hold() was called and not taken back.
  uint32_t holders = 0;
  /// Counts at the last reset of xstats, by their numbers; see xstats.cc.
  std::vector<uint64_t> xstats_zero;

 private:
  struct Queue {
    rte_raw_rio_queue_conf conf{};
    std::unique_ptr<QueuePair> pair;
    QueueIrq irq;
    QueueTotals past{};  // of pairs closed since
  };

  [[nodiscard]] int open_queue(uint32_t qp);
  void close_queue(uint32_t qp);
  [[nodiscard]] rte_raw_rio_queue_conf default_conf() const;
  [[nodiscard]] int check_conf(uint32_t qp, const rte_raw_rio_queue_conf& conf);

  std::string name_;
  bool started_ = false;
  bool start_again_ = false;  // after the reset
  std::shared_ptr<EalCard> card_;
  std::vector<Queue> queues_;
};

/// Device of a rawdev number. Null: none, of another driver, or closed.
[[nodiscard]] RawDevice* find_device(uint16_t dev_id);
/// Numbers of all raw devices of this driver.
[[nodiscard]] std::vector<uint16_t> device_ids();

}  // namespace rio::pmd
