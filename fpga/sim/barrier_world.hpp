/// @file
/// Barriers on a simulated network: a barrier engine of the card on each node. [S1]
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fpga/model/barrier/engine.hpp"
#include "fpga/sim/network.hpp"

namespace rio::sim {

struct BarrierSettings {
  NetworkSettings network;
  uint64_t step_ns = 40;  ///< from the cause of a notification to its way: the card's, or a host's
  uint64_t response_timeout_ns = 1'000'000;
  uint64_t retry_ns = 1'000;
  uint32_t resend_limit = 8;
  uint32_t early = 64;  ///< early notifications that a node has room for
};

/// How a barrier went.
struct BarrierOutcome {
  uint64_t last_arrival_ns = 0;
  uint64_t last_exit_ns = 0;
  uint32_t ended = 0;       ///< nodes that left with kOk
  uint32_t failed = 0;      ///< nodes that were told of a failure
  uint32_t violations = 0;  ///< nodes that left with kOk before the last one had arrived
  /// From the last arrival to the last exit.
  [[nodiscard]] uint64_t latency_ns() const { return last_exit_ns - last_arrival_ns; }
};

/// The nodes of a network, each with an engine. Barriers run one after the other; virtual time goes
/// on. One thread.
class BarrierWorld {
 public:
  /// @param error the error with its remedy; set on failure only. @return as Network::create().
  [[nodiscard]] static int create(NetworkTopology topology, const BarrierSettings& settings,
                                  std::unique_ptr<BarrierWorld>* out, std::string* error);
  BarrierWorld(const BarrierWorld&) = delete;
  BarrierWorld& operator=(const BarrierWorld&) = delete;
  ~BarrierWorld();

  /// Gives a node's descriptor, with nodes in the place of destIDs. Called when the node arrives.
  class Schedules {
   public:
    virtual void describe(uint32_t node, regs::BarrierDesc* out) = 0;

   protected:
    ~Schedules() = default;
  };
  /// Run one barrier. @param delays_ns when each node arrives, from now on; a node beyond its end
  /// arrives now. @param within_ns bound of virtual time: nodes that have not ended then are in
  /// neither number of the outcome.
  BarrierOutcome run(Schedules& schedules, std::span<const uint64_t> delays_ns, uint64_t within_ns);

  [[nodiscard]] NetworkBase& network() { return *network_; }
  /// When a node left the last barrier; 0: it did not, or failed.
  [[nodiscard]] uint64_t exit_ns(uint32_t node) const { return exits_ns_[node]; }
  [[nodiscard]] const model::barrier::Counters& counters(uint32_t node) const;

  // Of Network: see there.
  void deliver(NetworkBase& network, const Packet& packet);
  void expire(NetworkBase& network, const NodeTimer& timer);

 private:
  class Node;

  explicit BarrierWorld(const BarrierSettings& settings);
  void update_timer(uint32_t node);
  void note_end(uint32_t node, regs::Status status);

  BarrierSettings settings_;
  std::unique_ptr<Network<BarrierWorld>> network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<uint64_t> exits_ns_;
  Schedules* schedules_ = nullptr;  // of the barrier that runs
  BarrierOutcome outcome_;
  uint32_t arrived_ = 0;
};

}  // namespace rio::sim
