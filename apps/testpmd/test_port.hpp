/// @file
/// A port: a started rawdev of the driver raw_rio, with its queue pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "apps/testpmd/card_memory.hpp"
#include "apps/testpmd/histogram.hpp"
#include "apps/testpmd/options.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"

struct rte_device;

namespace rio::testpmd {

/// Buffers that lie in a port's shared receive queue while nothing is going on.
inline constexpr uint32_t kSharedBuffers = 256;

/// Counts of the driver, summed over the queues of a port, or of several ports.
struct DriverCounts {
  uint64_t bar_reads = 0;
  uint64_t bar_writes = 0;
  uint64_t tx_messages = 0;
  uint64_t tx_failed = 0;
  uint64_t rx_messages = 0;
  uint64_t rx_failed = 0;
  uint64_t rejected = 0;
  uint64_t bad_completions = 0;
};

/// The counts by name, in the order of the JSON report.
inline constexpr std::pair<const char*, uint64_t DriverCounts::*> kDriverCounts[] = {
    {"bar_reads", &DriverCounts::bar_reads},
    {"bar_writes", &DriverCounts::bar_writes},
    {"tx_messages", &DriverCounts::tx_messages},
    {"tx_failed", &DriverCounts::tx_failed},
    {"rx_messages", &DriverCounts::rx_messages},
    {"rx_failed", &DriverCounts::rx_failed},
    {"rejected", &DriverCounts::rejected},
    {"bad_completions", &DriverCounts::bad_completions}};

/// Opened by the main thread. Queues belong to the stream that polls them during a run.
class TestPort {
 public:
  /// All rawdevs of the driver, configured and started. @return 0, or -EINVAL with the remedy in
  /// `error`.
  /// @param barriers with their barrier rings, where the card has a barrier engine.
  [[nodiscard]] static int open_all(bool barriers, std::vector<std::unique_ptr<TestPort>>* out,
                                    std::string* error);
  /// Find the peer of each port: by --peers, or by the wires. @return 0 or -EINVAL.
  [[nodiscard]] static int connect(std::vector<std::unique_ptr<TestPort>>& ports,
                                   const Options& options, std::string* error);
  /// Stops the device, which lets go of its buffers. Main thread, nothing running.
  ~TestPort();
  TestPort(const TestPort&) = delete;
  TestPort& operator=(const TestPort&) = delete;

  const uint32_t index;
  const uint16_t dev_id;   ///< of the rawdev
  const std::string name;  ///< of the rawdev
  const std::string wire;  ///< of an emulated card; "" for a PCI card

  [[nodiscard]] pmd::Card& card() const { return *card_; }
  [[nodiscard]] uint32_t queue_pairs() const { return static_cast<uint32_t>(pairs_.size()); }
  [[nodiscard]] pmd::QueuePair& pair(uint32_t i = 0) const { return *pairs_[i]; }
  [[nodiscard]] uint32_t dest_id(uint32_t pair = 0) const { return dest_ids_[pair]; }
  [[nodiscard]] uint32_t peer_dest_id() const { return peer_dest_id_; }
  /// TestPort that receives what this one sends; null if it is in another process.
  [[nodiscard]] TestPort* peer() const { return peer_; }

  /// Fill the shared receive queue of pair 0 up to kSharedBuffers. Main thread, nothing running.
  [[nodiscard]] int fill_shared(MessagePool& pool, std::string* error);
  /// Buffers that lie in the shared queue of pair 0; kept by the stream that polls it.
  uint32_t shared_posted = 0;
  /// Of what comes in here.
  LatencyProbe probe;
  /// Epoch of the last barrier of each queue pair; kept by the stream that polls it.
  std::vector<uint64_t> barrier_epochs;
  /// Held by a poller while it closes or opens a dedicated queue, and by other threads while they
  /// look at the queues. Never in a burst.
  mutable std::mutex queues_lock;

  /// Add the counts since the port was opened, those of queues that were closed meanwhile included.
  /// Any thread.
  void add_counts(DriverCounts* sum) const;

  /// Let the emulated card fail as --faults says, from now on. @return as pmd::raw_set_faults(),
  /// for a rate of 0, too.
  [[nodiscard]] int set_faults(const Options& options);

 private:
  TestPort(uint32_t number, uint16_t rawdev, const rte_device* device);
  [[nodiscard]] int open(bool barriers, std::string* error);
  [[nodiscard]] int set_up_queue(uint16_t queue_pair, bool barriers) const;
  [[nodiscard]] int fail_alone(const std::vector<std::unique_ptr<TestPort>>& ports,
                               const Options& options, std::string* error) const;

  bool held_ = false;
  bool started_ = false;
  pmd::Card* card_ = nullptr;
  std::vector<pmd::QueuePair*> pairs_;
  std::vector<uint32_t> dest_ids_;
  uint32_t peer_dest_id_ = 0;
  TestPort* peer_ = nullptr;
};

/// Call `visit(regs::Ring, pmd::QueueBase&)` for the open rings of a queue pair, the dedicated ones
/// excepted.
template <typename Visit>
void for_each_ring(pmd::QueuePair& pair, Visit&& visit) {
  const auto visit_open = [&](regs::Ring ring, auto queue) {
    if ((pair.rings() & pmd::ring_bit(ring)) != 0) {
      visit(ring, static_cast<pmd::QueueBase&>((pair.*queue)()));
    }
  };
  visit_open(regs::Ring::kTx, &pmd::QueuePair::tx);
  visit_open(regs::Ring::kShared, &pmd::QueuePair::shared);
  visit_open(regs::Ring::kDoorbell, &pmd::QueuePair::doorbells);
  visit_open(regs::Ring::kDma, &pmd::QueuePair::dma);
  visit_open(regs::Ring::kMaint, &pmd::QueuePair::maint);
  visit_open(regs::Ring::kEvent, &pmd::QueuePair::events);
  visit_open(regs::Ring::kBarrier, &pmd::QueuePair::barriers);
}

}  // namespace rio::testpmd
