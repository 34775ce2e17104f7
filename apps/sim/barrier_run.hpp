/// @file
/// Barriers of one configuration, run one after the other on a simulated network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/sim/skew.hpp"
#include "fpga/model/barrier/engine.hpp"
#include "fpga/sim/barrier_world.hpp"
#include "lib/barrier/scheme.hpp"

namespace rio::simapp {

enum class EngineKind : uint8_t { kCard, kSoftware };

/// A configuration. Times are in ns.
struct BarrierPlan {
  std::string topology = "torus:8x4x4";
  std::string schedule;  ///< empty: the best that is known for the topology
  EngineKind engine = EngineKind::kCard;
  uint32_t ranks = 0;  ///< node 0 has the first ranks_per_node of them; 0: all nodes have as many
  uint32_t ranks_per_node = 1;  ///< the last node perhaps has fewer
  uint32_t memory_ns = 100;     ///< of an arrival in a node's memory, and from exit to exit
  uint32_t barriers = 1;
  /// A rank arrives at the next barrier when it has left the previous one and its skew has
  /// passed; false: when all have left the previous one and its skew has passed.
  bool back_to_back = false;
  uint32_t hop_ns = 100;
  uint32_t serialisation_ns = 8;
  uint32_t card_ns = 40;
  uint32_t host_overhead_ns = 1'100;  ///< of a round; kSoftware only
  uint32_t host_in_ns = 0;
  uint32_t host_out_ns = 0;
  Skew skew;
  double loss = 0.0;
  uint32_t dead = 0;                 ///< nodes that die, chosen by the seed
  std::vector<uint32_t> dead_nodes;  ///< more of them, by number
  uint64_t dead_from_ns = 0;         ///< earliest time at which a node dies; drawn from the seed
  uint64_t dead_until_ns = 0;        ///< latest time, included
  uint32_t early = 64;               ///< early notifications that a node has room for: DAMQ
  uint32_t timeout_ns = 1'000'000;   ///< of responses
  uint32_t resend_limit = 8;
  uint64_t deadline_ns = 0;  ///< after which a host cancels; 0: never
  uint64_t seed = 1;
  uint64_t within_ns = 1'000'000'000;  ///< bound of virtual time of a barrier

  /// Whether something is set that may make a barrier fail.
  [[nodiscard]] bool has_faults() const {
    return loss > 0.0 || dead != 0 || !dead_nodes.empty() || deadline_ns != 0;
  }
};

/// How often each value has occurred. One thread.
class Distribution {
 public:
  void add(uint64_t value) { ++counts_[value], ++count_; }
  [[nodiscard]] uint64_t count() const { return count_; }
  /// The smallest value that at least this share of all values does not exceed; 0 if there is none.
  /// @param share 0 to 1: 0 is the least value, 1 the greatest.
  [[nodiscard]] uint64_t at(double share) const;

 private:
  std::map<uint64_t, uint64_t> counts_;
  uint64_t count_ = 0;
};

/// The measured values of a run.
struct BarrierResult {
  uint32_t nodes = 0;
  uint32_t ranks = 0;
  std::vector<uint32_t> lengths;  ///< of a torus or mesh
  std::string schedule;           ///< as parse_scheme() reads it
  uint32_t rounds = 0;
  uint32_t diameter = 0;    ///< hops
  uint64_t bound_ns = 0;    ///< time of a packet over the diameter
  uint32_t barriers = 0;    ///< that were run; the last one may have failed
  Distribution latency_ns;  ///< of complete barriers: from the last arrival to the last exit
  /// Time from the last arrival to the exit of each rank that left; of all barriers, but back to
  /// back of the last one only.
  Distribution exits_ns;
  std::vector<uint64_t> last_exits_ns;  ///< of the last barrier, by rank; 0: it did not leave
  uint64_t left = 0;
  uint64_t failed = 0;
  uint64_t waiting = 0;  ///< living ranks for which the barrier had not ended when the run ended
  uint64_t dead = 0;     ///< ranks that were dead without having left
  uint64_t violations = 0;
  uint64_t events = 0;
  double seconds = 0.0;       ///< of this process's CPU time, for the barriers
  uint64_t memory_bytes = 0;  ///< most that this process has had
  sim::NetworkCounters network;
  model::barrier::Counters engines;  ///< sums, modulo 2^32

  /// Ratio of the median latency to the bound.
  [[nodiscard]] double bound_ratio() const;
  /// Whether ranks passed a barrier too early, or one failed that no fault explains.
  [[nodiscard]] bool is_bad(const BarrierPlan& plan) const {
    return violations != 0 || (!plan.has_faults() && failed + waiting != 0);
  }
};

/// How far a run has come.
struct BarrierProgress {
  uint32_t barrier;  ///< from 0
  uint32_t left;     ///< of this barrier's ranks
  uint32_t ranks;
};
using BarrierWatch = std::function<void(const BarrierProgress&)>;

/// Complete a schedule's text: "torus", "dimensions" and "mesh" get the topology's lengths, and an
/// empty text becomes the best known schedule. Any thread.
/// @param scheme set only on success. @param error one line with the remedy; set only on failure.
/// @return 0, -EINVAL, -E2BIG.
[[nodiscard]] int resolve_schedule(const std::string& text, const sim::NetworkTopology& topology,
                                   uint32_t ranks, barrier::Scheme* scheme, std::string* error);

/// Run a configuration. It ends with the first barrier that is not complete.
/// @param out set only on success. @param error one line with the remedy; set only on failure.
/// @return 0; -EINVAL, -E2BIG or another -errno: the configuration cannot be run.
[[nodiscard]] int run_barriers(const BarrierPlan& plan, const BarrierWatch& watch,
                               BarrierResult* out, std::string* error);

}  // namespace rio::simapp
