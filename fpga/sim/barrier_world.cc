#include "fpga/sim/barrier_world.hpp"

#include <algorithm>
#include <utility>

#include "base/formatted.hpp"

namespace rio::sim {
namespace {

namespace barrier = model::barrier;

// Words of timers that are no destination of a notification.
constexpr uint32_t kArrival = ~0u;
constexpr uint32_t kAdvance = ~0u - 1;
constexpr uint32_t kPost = ~0u - 2;
constexpr uint32_t kDeadline = ~0u - 3;
constexpr uint32_t kMet = ~0u - 4;
constexpr uint64_t kNever = ~uint64_t{0};
constexpr uint64_t kSliceNs = 1'000;
// Index of a descriptor that cancels: its own completion is not the member's.
constexpr uint32_t kCancelIndex = 1;

}  // namespace

/// An engine, and the memory for its early notifications.
class BarrierWorld::Node final : public barrier::Ends {
 public:
  Node(BarrierWorld& world, uint32_t number)
      : world_(world),
        number_(number),
        room_(world.settings_.early),
        // The engine's time-out begins when a round is due, but the host may still be busy with
        // others.
        engine_({.response_timeout_ns = world.settings_.response_timeout_ns +
                                        regs::kBarrierRoundsMax * world.settings_.host_round_ns,
                 .retry_ns = world.settings_.retry_ns,
                 .resend_limit = world.settings_.resend_limit,
                 .own_id = number},
                *this, room_) {}

  void send(const barrier::Request& request) override {
    NetworkBase& network = *world_.network_;
    network.set_timer(ready_ns(request.notice.round) + world_.settings_.step_ns,
                      {number_, request.tag, request.dest_id, request.notice.info()});
  }
  void end(const barrier::Ended& ended) override {
    if (ended.index != kCancelIndex) {
      world_.note_end(number_, ended.status);
    }
  }
  void report_foreign(uint32_t /*source*/, const barrier::Notice& /*notice*/) override {}

  [[nodiscard]] barrier::BarrierEngine& engine() { return engine_; }
  /// @return whether a timer has to be set for the engine, at due_ns().
  [[nodiscard]] bool needs_timer() {
    const bool needs = engine_.due_ns() < timer_ns_;
    timer_ns_ = std::min(timer_ns_, engine_.due_ns());
    return needs;
  }
  void forget_timer(uint64_t now_ns) { timer_ns_ = timer_ns_ <= now_ns ? kNever : timer_ns_; }

 private:
  /// When a notification can leave: now, or, if the host runs the rounds, when it has done this
  /// one. Notifications of a round that leave together cost the host once.
  [[nodiscard]] uint64_t ready_ns(uint32_t round) {
    const uint64_t now_ns = world_.network_->now();
    if (world_.settings_.host_round_ns == 0) {
      return now_ns;
    }
    if (round != host_round_ || now_ns != host_cause_ns_) {
      host_round_ = round;
      host_cause_ns_ = now_ns;
      host_busy_ns_ = std::max(now_ns, host_busy_ns_) + world_.settings_.host_round_ns;
    }
    return host_busy_ns_;
  }

  BarrierWorld& world_;
  uint32_t number_;
  uint32_t host_round_ = ~0u;  // the host's last round, the time of its cause, and its end
  uint64_t host_cause_ns_ = 0;
  uint64_t host_busy_ns_ = 0;
  barrier::EarlyRoom room_;
  uint64_t timer_ns_ = kNever;  // the earliest timer that is set
  barrier::BarrierEngine engine_;
};

int BarrierWorld::create(NetworkTopology topology, const BarrierSettings& settings,
                         std::unique_ptr<BarrierWorld>* out, std::string* error) {
  const uint32_t nodes = topology.nodes();
  if (settings.members > nodes) {
    return base::fail(error, "%u members on %u nodes; give at most as many as there are nodes",
                      settings.members, nodes);
  }
  const uint32_t members = settings.members != 0 ? settings.members : nodes;
  if (!settings.ranks.empty() && settings.ranks.size() != members) {
    return base::fail(error, "ranks of %zu nodes for %u members; give the ranks of each",
                      settings.ranks.size(), members);
  }
  std::unique_ptr<BarrierWorld> world(new BarrierWorld(settings));
  const int rc = Network<BarrierWorld>::create(std::move(topology), settings.network, *world,
                                               &world->network_, error);
  if (rc != 0) {
    return rc;
  }
  world->meetings_.resize(settings.ranks.size());
  world->exits_ns_.resize(members);
  world->ends_.resize(members);
  world->turns_.resize(members);
  world->memory_ = reserve_huge(members * sizeof(Node));
  auto* const first = static_cast<Node*>(world->memory_.get());
  for (uint32_t node = 0; node < members; ++node) {
    std::construct_at(first + node, *world, node);
    world->nodes_ = {first, node + 1};
    world->ranks_ += world->ranks_of(node).count;
  }
  *out = std::move(world);
  return 0;
}

BarrierWorld::BarrierWorld(const BarrierSettings& settings) : settings_(settings) {}
BarrierWorld::~BarrierWorld() {
  std::destroy(nodes_.begin(), nodes_.end());
}

BarrierOutcome BarrierWorld::run(Schedules& schedules, std::span<const uint64_t> delays_ns,
                                 uint64_t within_ns, const Watch& watch) {
  const auto delay_ns = [&](uint32_t rank, uint32_t /*barrier*/) {
    return rank < delays_ns.size() ? delays_ns[rank] : 0;
  };
  return run_back_to_back(schedules, 1, delay_ns, within_ns, watch);
}

BarrierOutcome BarrierWorld::run_back_to_back(Schedules& schedules, uint32_t barriers,
                                              const Pause& pause_ns, uint64_t within_ns,
                                              const Watch& watch) {
  const uint64_t last_exit_ns = outcome_.last_exit_ns;
  schedules_ = &schedules;
  pause_ns_ = &pause_ns;
  outcome_ = {};
  serial_ += static_cast<uint32_t>(times_.size());
  times_.assign(barriers, {});
  std::fill(turns_.begin(), turns_.end(), 0);
  std::fill(exits_ns_.begin(), exits_ns_.end(), 0);
  std::fill(ends_.begin(), ends_.end(), MemberEnd::kWaiting);
  // The events of a run end before its last exits if hosts or memories take time after them.
  const uint64_t begin_ns = std::max(network_->now(), last_exit_ns);
  std::fill(meetings_.begin(), meetings_.end(), Meeting{});
  for (uint32_t node = 0; node < members(); ++node) {
    const NodeRanks ranks = ranks_of(node);
    for (uint32_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
      network_->set_timer(begin_ns + pause_ns(rank, 0), {.node = node, .word = kArrival});
    }
  }
  // In slices, so that time-outs after the last exit are not simulated.
  const uint64_t end_ns = begin_ns + within_ns;
  for (uint64_t until_ns = begin_ns; outcome_.ended + outcome_.failed < ranks() &&
                                     until_ns < end_ns && network_->events() != 0;) {
    until_ns = std::min(until_ns + kSliceNs, end_ns);
    outcome_.events += network_->run(until_ns);
    if (watch) {
      watch(outcome_);
    }
  }
  outcome_.last_arrival_ns = times_.back().last_arrival_ns;
  outcome_.last_exit_ns = times_.back().last_exit_ns;
  schedules_ = nullptr;
  pause_ns_ = nullptr;
  return outcome_;
}

const barrier::Counters& BarrierWorld::counters(uint32_t node) const {
  return nodes_[node].engine().counters();
}

/// Hot. A packet will be delivered at this node soon.
void BarrierWorld::prefetch(uint32_t node) const {
  __builtin_prefetch(&nodes_[node].engine());
}

void BarrierWorld::deliver(NetworkBase& network, const Packet& packet) {
  barrier::BarrierEngine& engine = nodes_[packet.destination].engine();
  if (packet.kind == kRequest) {
    const barrier::Answer answer =
        engine.receive(network.now(), packet.source, barrier::Notice::of(packet.info));
    network.send({.source = packet.destination,
                  .destination = packet.source,
                  .tag = packet.tag,
                  .info = static_cast<uint16_t>(answer),
                  .kind = kResponse});
  } else {
    engine.answered(network.now(), packet.tag, static_cast<barrier::Answer>(packet.info));
  }
  update_timer(packet.destination);
}

void BarrierWorld::expire(NetworkBase& network, const NodeTimer& timer) {
  switch (timer.word) {
    case kArrival:
      return note_arrival(timer.node);
    case kMet:
      return timer.tag == timer_tag(timer.node) ? start(timer.node) : void();
    case kPost:
      return timer.tag == timer_tag(timer.node) ? post(timer.node) : void();
    case kDeadline:
      return timer.tag == timer_tag(timer.node) ? cancel(timer.node) : void();
    case kAdvance:
      nodes_[timer.node].forget_timer(network.now());
      nodes_[timer.node].engine().advance(network.now());
      return update_timer(timer.node);
    default:
      network.send({.source = timer.node,
                    .destination = timer.word,
                    .tag = timer.tag,
                    .info = timer.info,
                    .kind = kRequest});
  }
}

void BarrierWorld::note_arrival(uint32_t node) {
  const uint64_t now_ns = network_->now();
  Times& times = times_[turns_[node]];
  ++times.arrived;
  times.last_arrival_ns = now_ns;
  const uint32_t ranks = ranks_of(node).count;
  if (ranks == 1) {
    return start(node);
  }
  Meeting& meeting = meetings_[node];
  meeting.busy_ns = std::max(now_ns, meeting.busy_ns) + settings_.memory_ns;
  if (++meeting.arrived == ranks) {
    network_->set_timer(meeting.busy_ns, {.node = node, .tag = timer_tag(node), .word = kMet});
  }
}

/// Start a node's barrier: all its ranks have arrived.
void BarrierWorld::start(uint32_t node) {
  const uint64_t now_ns = network_->now();
  if (settings_.deadline_ns != 0) {
    network_->set_timer(now_ns + settings_.deadline_ns,
                        {.node = node, .tag = timer_tag(node), .word = kDeadline});
  }
  if (settings_.host_in_ns != 0) {
    network_->set_timer(now_ns + settings_.host_in_ns,
                        {.node = node, .tag = timer_tag(node), .word = kPost});
  } else {
    post(node);
  }
}

void BarrierWorld::describe(uint32_t node, regs::BarrierDesc* out) {
  schedules_->describe(node, out);
  out->epoch += turns_[node];
}

void BarrierWorld::post(uint32_t node) {
  regs::BarrierDesc desc{};
  describe(node, &desc);
  nodes_[node].engine().post(network_->now(), desc, 0);
  update_timer(node);
}

/// Cancel a node's barrier, whose deadline has passed.
void BarrierWorld::cancel(uint32_t node) {
  if (ends_[node] != MemberEnd::kWaiting) {
    return;
  }
  using Op = regs::BarrierOp;
  static_assert(static_cast<uint32_t>(Op::kRun) == 0, "describe() has left the operation 0");
  regs::BarrierDesc desc{};
  describe(node, &desc);
  desc.control |= regs::barrier_desc::Control::op.put(static_cast<uint32_t>(Op::kCancel));
  nodes_[node].engine().post(network_->now(), desc, kCancelIndex);
  update_timer(node);
}

void BarrierWorld::update_timer(uint32_t node) {
  if (nodes_[node].needs_timer()) {
    network_->set_timer(nodes_[node].engine().due_ns(), {.node = node, .word = kAdvance});
  }
}

void BarrierWorld::note_end(uint32_t node, regs::Status status) {
  const NodeRanks ranks = ranks_of(node);
  if (status != regs::Status::kOk) {
    ends_[node] = MemberEnd::kFailed;
    outcome_.failed += ranks.count;
    return;
  }
  Times& times = times_[turns_[node]];
  outcome_.violations += times.arrived != ranks_ ? ranks.count : 0;
  exits_ns_[node] = network_->now() + settings_.host_out_ns;
  times.left += ranks.count;
  times.last_exit_ns = std::max(times.last_exit_ns, exit_ns(node, ranks.count - 1));
  if (turns_[node] + 1 == times_.size()) {
    ends_[node] = MemberEnd::kLeft;
    outcome_.ended += ranks.count;
    return;
  }
  ++turns_[node];
  if (ranks.count != 1) {
    meetings_[node].arrived = 0;
  }
  for (uint32_t local = 0; local < ranks.count; ++local) {
    network_->set_timer(exit_ns(node, local) + (*pause_ns_)(ranks.first + local, turns_[node]),
                        {.node = node, .word = kArrival});
  }
}

}  // namespace rio::sim
