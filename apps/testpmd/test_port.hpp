/// @file
/// A port: a started rawdev of the driver raw_rio, with its queue pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apps/testpmd/driver_counts.hpp"
#include "apps/testpmd/histogram.hpp"
#include "apps/testpmd/message_pool.hpp"
#include "apps/testpmd/options.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"

namespace rio::testpmd {

/// Buffers that lie in a port's shared receive queue while nothing is going on.
inline constexpr uint32_t kSharedBuffers = 256;

/// Opened by the main thread. Queues belong to the stream that polls them during a run.
class TestPort {
 public:
  /// All rawdevs of the driver, configured and started. @return 0, -ENODEV (none), or -errno.
  [[nodiscard]] static int open_all(std::vector<std::unique_ptr<TestPort>>* out,
                                    std::string* error);
  /// Find the peer of each port: by --peers, or by the wires. @return 0 or -EINVAL.
  [[nodiscard]] static int connect(std::vector<std::unique_ptr<TestPort>>& ports,
                                   const Options& options, std::string* error);
  ~TestPort();
  TestPort(const TestPort&) = delete;
  TestPort& operator=(const TestPort&) = delete;

  [[nodiscard]] uint32_t index() const { return index_; }
  [[nodiscard]] uint16_t dev_id() const { return dev_id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& wire() const { return wire_; }
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
  /// The counts that clear_counts() has taken for zero.
  PortCounts counted_before;
  /// Held by a poller while it closes or opens a dedicated queue, and by other threads while they
  /// look at the queues. Never in a burst.
  mutable std::mutex queues_lock;

  /// Stop the device: its buffers are free then. Main thread, nothing running.
  void close();

  /// Let the emulated card fail from now on. @return 0 or -ENOTSUP (no emulated card).
  [[nodiscard]] int set_faults(uint64_t seed, double rate);

 private:
  TestPort() = default;
  [[nodiscard]] std::string why_alone(const std::vector<std::unique_ptr<TestPort>>& ports,
                                      const Options& options) const;
  uint32_t index_ = 0;
  uint16_t dev_id_ = 0;
  std::string name_;
  std::string wire_;
  bool held_ = false;
  bool started_ = false;
  pmd::Card* card_ = nullptr;
  std::vector<pmd::QueuePair*> pairs_;
  std::vector<uint32_t> dest_ids_;
  uint32_t peer_dest_id_ = 0;
  TestPort* peer_ = nullptr;
};

}  // namespace rio::testpmd
