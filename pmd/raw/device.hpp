/// @file
/// A raw device: queue pairs of a card; and how one is made of a device that a bus of EAL has
/// found.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "pmd/card/eal_card.hpp"
#include "pmd/dev/queue_irq.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/raw/rte_raw_rio.h"

struct rte_device;
struct rte_rawdev_ops;

namespace rio::pmd {

/// Table of the control functions, which tells devices of this driver from others; constant.
extern const rte_rawdev_ops kRawOps;

/// Rings of a queue pair that have counters of their own; the dedicated rings are summed up.
inline constexpr std::array<const char*, 7> kCountedRings = {
    "tx", "shared", "doorbell", "dma", "event", "dedicated", "barrier"};
using QueueTotals = std::array<RingTotals, kCountedRings.size()>;

/// A raw device. Control path, under control_lock(). Functions return 0 or -errno; the cause is
/// logged.
class RawDevice final : public CardUser {
 public:
  /// @param name of the device. @param card may have other users.
  RawDevice(std::string name, std::shared_ptr<EalCard> card);
  /// Stop the device and free all that it has.
  ~RawDevice();

  /// Claim a queue pair for this process. @param conf null: the default.
  [[nodiscard]] int setup_queue(uint32_t qp, const rte_raw_rio_queue_conf* conf);
  [[nodiscard]] int release_queue(uint32_t qp);
  /// Open all claimed queue pairs; all or none.
  [[nodiscard]] int start();
  /// Close all queue pairs. Claims stay.
  void stop();
  /// Reset the card with new settings, like EalCard::configure().
  [[nodiscard]] int configure(const rte_raw_rio_config& config);
  /// Reset the card. The program keeps its threads out of the bursts of this device.
  [[nodiscard]] int reset();

  /// Bursts of a raw device take no turn. @return -EBUSY: it is started, and another device resets
  /// the card.
  [[nodiscard]] int hold() override;
  void before_reset() override;
  [[nodiscard]] int after_reset() override;
  [[nodiscard]] EalCard& eal_card() { return *card_; }
  [[nodiscard]] Bus& bus() { return card_->bus(); }
  /// The card; null: the last reset failed.
  [[nodiscard]] Card* card() { return card_->card(); }
  [[nodiscard]] uint32_t queue_pairs() const { return static_cast<uint32_t>(queues_.size()); }
  [[nodiscard]] bool started() const { return started_; }
  /// A queue pair; null: it is not open in this process.
  [[nodiscard]] QueuePair* queue_pair(uint32_t qp);
  /// Interrupts of an open queue pair.
  [[nodiscard]] const QueueIrq& irq(uint32_t qp) const { return queues_[qp].irq; }
  [[nodiscard]] rte_raw_rio_queue_conf queue_conf(uint32_t qp) const;
  [[nodiscard]] QueueTotals totals(uint32_t qp);

  /// Number of raw_hold() calls without a raw_let_go() since.
  uint32_t holders = 0;
  /// Counts at the last reset of xstats, by number; see xstats.cc.
  std::vector<uint64_t> xstats_zero;

 private:
  struct Queue {
    rte_raw_rio_queue_conf conf{};
    std::unique_ptr<QueuePair> pair;
    QueueIrq irq;
    QueueTotals past{};  // counts of pairs that were closed since
  };

  [[nodiscard]] int open_queue(uint32_t qp);
  [[nodiscard]] rte_raw_rio_queue_conf default_conf() const;
  [[nodiscard]] int check_conf(uint32_t qp, const rte_raw_rio_queue_conf& conf);

  bool started_ = false;
  bool start_again_ = false;  // restart after the reset
  bool resets_ = false;       // it is this device that resets the card
  std::vector<Queue> queues_;
};

/// Find a device by its rawdev number. @return null: no such device, another driver's, or closed.
[[nodiscard]] RawDevice* find_device(uint16_t dev_id);

/// Make a device, and give it to rawdev, which then owns it. @param driver a constant. @return 0 or
/// -errno.
[[nodiscard]] int register_device(rte_device& parent, const char* name, const char* driver,
                                  std::shared_ptr<EalCard> card);

/// Stop and close the raw device of this name and remove it from rawdev. @return 0, -ENODEV.
[[nodiscard]] int unregister_device(const char* name);

}  // namespace rio::pmd
