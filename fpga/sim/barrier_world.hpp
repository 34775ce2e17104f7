/// @file
/// Barriers on a simulated network: a barrier engine of the card on each node. [S1]
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fpga/model/barrier/engine.hpp"
#include "fpga/sim/huge_memory.hpp"
#include "fpga/sim/network.hpp"

namespace rio::sim {

/// The ranks that run on one node: `count` consecutive numbers. The first one is the leader.
struct NodeRanks {
  uint32_t first = 0;
  uint32_t count = 1;  ///< 1 or more
};

struct BarrierSettings {
  NetworkSettings network{};
  uint32_t members = 0;  ///< nodes 0 to members - 1 take part; 0: all
  /// Ranks of each member. If a node has several, they meet in its memory, and the node arrives
  /// with the last of them: its card takes part for all. Empty: one rank a node, of the same
  /// number.
  std::vector<NodeRanks> ranks{};
  /// Of a node with several ranks: the time that an arrival in memory takes, one after the other;
  /// and the time from one rank's exit to that of the next, the leader's being the first.
  uint64_t memory_ns = 0;
  uint64_t step_ns = 40;  ///< the card's work: from the cause of a notification until it leaves
  /// Host overhead. 0: the card runs the rounds. Otherwise the host does, one round after the
  /// other, and each takes this time before the card's step.
  uint64_t host_round_ns = 0;
  uint64_t host_in_ns = 0;   ///< from a node's arrival until the card has its descriptor
  uint64_t host_out_ns = 0;  ///< from the card's completion until the node leaves
  /// A host whose barrier takes longer than this from its arrival on cancels it; 0: it waits.
  uint64_t deadline_ns = 0;
  uint64_t response_timeout_ns = 1'000'000;  ///< if the host runs the rounds, 20 rounds longer
  uint64_t retry_ns = 1'000;
  uint32_t resend_limit = 8;
  uint32_t early = 64;  ///< early notifications that a node has room for
};

/// How a barrier went for one member.
enum class MemberEnd : uint8_t {
  kWaiting,  ///< it has not ended, or has never arrived
  kLeft,     ///< it left as kOk
  kFailed,   ///< it was told of a failure
};

/// How a barrier went.
struct BarrierOutcome {
  uint64_t last_arrival_ns = 0;
  uint64_t last_exit_ns = 0;
  uint64_t events = 0;      ///< events of the network that were handled
  uint32_t ended = 0;       ///< ranks that left with kOk
  uint32_t failed = 0;      ///< ranks that were told of a failure
  uint32_t violations = 0;  ///< ranks that left with kOk before the last one had arrived
  /// From the last arrival to the last exit.
  [[nodiscard]] uint64_t latency_ns() const { return last_exit_ns - last_arrival_ns; }
};

/// The nodes of a network, each with an engine, and the barriers that they run, one after the
/// other. Virtual time goes on between them. One thread.
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
  /// Called about every microsecond of virtual time while a barrier runs.
  using Watch = std::function<void(const BarrierOutcome& so_far)>;

  /// Run one barrier, until it has ended for all members or no event is left. @param delays_ns when
  /// each rank arrives, from now on; ranks for which there is no delay arrive now. @param
  /// within_ns bound of virtual time: a member for which the barrier has not ended then counts as
  /// neither ended nor failed.
  BarrierOutcome run(Schedules& schedules, std::span<const uint64_t> delays_ns, uint64_t within_ns,
                     const Watch& watch = {});

  /// Run barriers back to back: a rank that has left one arrives at the next one after a pause,
  /// while others may still be in the previous one. Epochs count up from that of describe().
  /// @param barriers at least 1. @param pause_ns gives the pause before each barrier, the first
  /// one's from now on. @param within_ns as for run().
  /// @return `ended`: ranks that left all barriers; the times are those of the last barrier.
  using Pause = std::function<uint64_t(uint32_t rank, uint32_t barrier)>;
  BarrierOutcome run_back_to_back(Schedules& schedules, uint32_t barriers, const Pause& pause_ns,
                                  uint64_t within_ns, const Watch& watch = {});

  /// Arrivals of ranks at a barrier and their exits from it.
  struct Times {
    uint64_t last_arrival_ns = 0;
    uint64_t last_exit_ns = 0;
    uint32_t arrived = 0;
    uint32_t left = 0;
  };
  /// Of each barrier of the last run.
  [[nodiscard]] std::span<const Times> times() const { return times_; }

  [[nodiscard]] uint32_t members() const { return static_cast<uint32_t>(nodes_.size()); }
  /// Ranks of all members.
  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  /// Ranks of one member.
  [[nodiscard]] NodeRanks ranks_of(uint32_t node) const {
    return settings_.ranks.empty() ? NodeRanks{.first = node} : settings_.ranks[node];
  }
  [[nodiscard]] NetworkBase& network() { return *network_; }
  /// When a rank of a member left the last barrier; 0: it did not, or failed.
  /// @param local index among the ranks of the node.
  [[nodiscard]] uint64_t exit_ns(uint32_t node, uint32_t local = 0) const {
    return exits_ns_[node] != 0 ? exits_ns_[node] + local * settings_.memory_ns : 0;
  }
  /// How the last barrier went for a member.
  [[nodiscard]] MemberEnd end_of(uint32_t node) const { return ends_[node]; }
  [[nodiscard]] const model::barrier::Counters& counters(uint32_t node) const;

  // Of Network: see there.
  void deliver(NetworkBase& network, const Packet& packet);
  void expire(NetworkBase& network, const NodeTimer& timer);
  void prefetch(uint32_t node) const;

 private:
  class Node;
  /// How far the ranks of a node are that meet in its memory.
  struct Meeting {
    uint32_t arrived = 0;
    uint64_t busy_ns = 0;  ///< until when the arrivals so far take
  };

  explicit BarrierWorld(const BarrierSettings& settings);
  /// A number that distinguishes timers of a member's barrier from those of an earlier one, which
  /// are ignored.
  [[nodiscard]] uint32_t timer_tag(uint32_t node) const { return serial_ + turns_[node]; }
  void describe(uint32_t node, regs::BarrierDesc* out);
  void note_arrival(uint32_t node);
  void start(uint32_t node);
  void post(uint32_t node);
  void cancel(uint32_t node);
  void update_timer(uint32_t node);
  void note_end(uint32_t node, regs::Status status);

  BarrierSettings settings_;
  std::unique_ptr<Network<BarrierWorld>> network_;
  HugeMemory memory_;
  std::span<Node> nodes_;           // in memory_
  std::vector<Meeting> meetings_;   // by node; empty if settings_.ranks is
  uint32_t ranks_ = 0;              // of all members
  std::vector<uint64_t> exits_ns_;  // of leaders
  std::vector<MemberEnd> ends_;
  Schedules* schedules_ = nullptr;  // of the barrier that runs
  BarrierOutcome outcome_;
  const Pause* pause_ns_ = nullptr;  // of the run
  std::vector<Times> times_;         // by barrier of the run
  std::vector<uint32_t> turns_;      // the barrier of the run at which each member is
  uint32_t serial_ = 0;              // of the run's first barrier: see timer_tag()
};

}  // namespace rio::sim
