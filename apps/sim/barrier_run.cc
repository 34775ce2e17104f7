#include "apps/sim/barrier_run.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <ctime>
#include <memory>
#include <utility>

#include "base/formatted.hpp"
#include "base/random.hpp"
#include "fpga/sim/fault.hpp"
#include "lib/barrier/node_place.hpp"

namespace rio::simapp {
namespace {

constexpr uint64_t kPausesMax = 1u << 26;
constexpr uint64_t kRanksMax = 1u << 24;

/// CPU time of this process: other programs on the core do not count.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

uint64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

std::vector<uint32_t> lengths_of(const sim::NetworkTopology& topology) {
  std::vector<uint32_t> lengths;
  if (const auto* const grid = std::get_if<sim::Grid>(&topology.shape()); grid != nullptr) {
    for (uint32_t d = 0; d < grid->dimensions(); ++d) {
      lengths.push_back(grid->length(d));
    }
  }
  return lengths;
}

/// The best known schedule. A schedule of a grid needs all nodes of the grid.
std::string best_schedule(const sim::NetworkTopology& topology, uint32_t ranks) {
  const auto* const grid = std::get_if<sim::Grid>(&topology.shape());
  if (grid == nullptr || ranks != topology.nodes()) {
    return "classic";
  }
  return grid->wraps() ? "torus" : "mesh";
}

/// Descriptors of a scheme whose ranks are the nodes, each with one rank or several.
class SchemeSchedules final : public sim::BarrierWorld::Schedules {
 public:
  SchemeSchedules(const barrier::Scheme& scheme, uint32_t ranks) : scheme_(scheme), ranks_(ranks) {}
  void describe(uint32_t node, regs::BarrierDesc* out) override {
    barrier::Schedule schedule;
    const int made = barrier::make_schedule(scheme_, ranks_, node, &schedule);
    assert(made == 0);
    const int written = barrier::write_descriptor(
        schedule, {.epoch = epoch}, [](uint32_t rank) { return rank; }, out);
    assert(written == 0);
    static_cast<void>(made);
    static_cast<void>(written);
  }
  uint32_t epoch = 0;

 private:
  barrier::Scheme scheme_;
  uint32_t ranks_;
};

uint32_t ranks_of(const BarrierPlan& plan, const sim::NetworkTopology& topology) {
  return plan.ranks != 0 ? plan.ranks : topology.nodes() * plan.ranks_per_node;
}

barrier::NodePlace place_of(const BarrierPlan& plan, uint32_t ranks, uint32_t rank) {
  barrier::NodePlace place;
  const int placed = barrier::place_in_blocks(ranks, plan.ranks_per_node, rank, &place);
  assert(placed == 0);
  static_cast<void>(placed);
  return place;
}

sim::BarrierSettings settings_of(const BarrierPlan& plan, uint32_t ranks) {
  sim::BarrierSettings settings;
  settings.network.classes = {
      {.serialisation_ns = plan.serialisation_ns, .hop_ns = plan.hop_ns, .loss_rate = plan.loss}};
  settings.network.seed = plan.seed;
  settings.members = place_of(plan, ranks, 0).nodes;
  for (uint32_t rank = 0; plan.ranks_per_node != 1 && rank < ranks;) {
    const barrier::NodePlace place = place_of(plan, ranks, rank);
    settings.ranks.push_back({.first = place.leader, .count = place.local_ranks});
    rank += place.local_ranks;
  }
  settings.memory_ns = plan.memory_ns;
  settings.step_ns = plan.card_ns;
  settings.host_round_ns = plan.engine == EngineKind::kSoftware ? plan.host_overhead_ns : 0;
  settings.host_in_ns = plan.host_in_ns;
  settings.host_out_ns = plan.host_out_ns;
  settings.deadline_ns = plan.deadline_ns;
  settings.response_timeout_ns = plan.timeout_ns;
  settings.resend_limit = plan.resend_limit;
  settings.early = plan.early;
  return settings;
}

int check_plan(const BarrierPlan& plan, const sim::NetworkTopology& topology, std::string* error) {
  const uint32_t nodes = topology.nodes();
  const uint32_t local = plan.ranks_per_node;
  if (local == 0 || (local != 1 && uint64_t{nodes} * local > kRanksMax)) {
    return base::fail(error, "%u nodes with %u ranks each; give 1 to each, and at most %llu in all",
                      nodes, local, static_cast<unsigned long long>(kRanksMax));
  }
  const uint32_t ranks = ranks_of(plan, topology);
  if (local == 1 && (ranks < 2 || ranks > nodes)) {
    return base::fail(error, "%u ranks on %u nodes; a barrier has 2 ranks or more, one a node",
                      ranks, nodes);
  }
  if (ranks <= local || ranks > nodes * local) {
    return base::fail(error, "%u ranks on %u nodes, %u a node; 2 nodes or more must hold them all",
                      ranks, nodes, local);
  }
  if (plan.dead_from_ns > plan.dead_until_ns) {
    return base::fail(error, "nodes die from %llu to %llu ns; give the earlier time first",
                      static_cast<unsigned long long>(plan.dead_from_ns),
                      static_cast<unsigned long long>(plan.dead_until_ns));
  }
  for (const uint32_t node : plan.dead_nodes) {
    if (node >= nodes) {
      return base::fail(error, "dead node %u: there are nodes 0 to %u", node, nodes - 1);
    }
  }
  if (plan.back_to_back && uint64_t{plan.barriers} * ranks > kPausesMax) {
    return base::fail(error, "%u barriers of %u ranks back to back are too many; give fewer",
                      plan.barriers, ranks);
  }
  if (plan.dead > nodes) {
    return base::fail(error, "%u dead nodes of %u; give fewer", plan.dead, nodes);
  }
  return 0;
}

void schedule_deaths(const BarrierPlan& plan, sim::NetworkBase& network) {
  base::Random random(plan.seed + 1);
  for (const uint32_t node : plan.dead_nodes) {
    const uint64_t at_ns =
        plan.dead_from_ns + random.next() % (plan.dead_until_ns - plan.dead_from_ns + 1);
    network.schedule({.at_ns = at_ns, .kind = sim::FaultKind::kDeviceDown, .target = node});
  }
  for (const sim::NetworkFault& fault :
       sim::random_faults(network.topology(), sim::FaultKind::kDeviceDown, plan.dead,
                          plan.dead_from_ns, plan.dead_until_ns, plan.seed)) {
    network.schedule(fault);
  }
}

void add_counters(const model::barrier::Counters& from, model::barrier::Counters* to) {
  to->sent += from.sent;
  to->received += from.received;
  to->early += from.early;
  to->nacks_given += from.nacks_given;
  to->nacks_taken += from.nacks_taken;
  to->resent += from.resent;
  to->stale += from.stale;
  to->foreign += from.foreign;
  to->cancelled += from.cancelled;
}

/// Adds a run of the world to the result. @return whether all ranks left all its barriers.
bool add_outcome(sim::BarrierWorld& world, const sim::BarrierOutcome& outcome, BarrierResult* out) {
  out->failed += outcome.failed;
  out->violations += outcome.violations;
  out->events += outcome.events;
  for (const sim::BarrierWorld::Times& times : world.times()) {
    out->barriers += times.arrived != 0 ? 1 : 0;
    out->left += times.left;
    if (times.left == world.ranks()) {
      out->latency_ns.add(std::max(times.last_exit_ns, times.last_arrival_ns) -
                          times.last_arrival_ns);
    }
  }
  const uint64_t last_ns = outcome.last_arrival_ns;
  for (uint32_t node = 0; node < world.members(); ++node) {
    const uint32_t ranks = world.ranks_of(node).count;
    if (world.end_of(node) == sim::MemberEnd::kLeft) {
      for (uint32_t local = 0; local < ranks; ++local) {
        out->exits_ns.add(std::max(world.exit_ns(node, local), last_ns) - last_ns);
      }
    } else if (world.end_of(node) == sim::MemberEnd::kWaiting) {
      (world.network().is_up(node) ? out->waiting : out->dead) += ranks;
    }
  }
  return outcome.ended == world.ranks();
}

void note_end(sim::BarrierWorld& world, uint64_t last_arrival_ns, BarrierResult* out) {
  out->network = world.network().counters();
  out->last_exits_ns.resize(world.ranks());
  for (uint32_t node = 0; node < world.members(); ++node) {
    add_counters(world.counters(node), &out->engines);
    const sim::NodeRanks ranks = world.ranks_of(node);
    for (uint32_t local = 0; local < ranks.count; ++local) {
      const uint64_t exit_ns = world.exit_ns(node, local);
      out->last_exits_ns[ranks.first + local] =
          exit_ns > last_arrival_ns ? exit_ns - last_arrival_ns : 0;
    }
  }
  out->memory_bytes = peak_memory_bytes();
}

/// Run the barriers one after the other. @return when the last rank arrived at the last one.
uint64_t run_each(const BarrierPlan& plan, const BarrierWatch& watch, sim::BarrierWorld& world,
                  SchemeSchedules& schedules, BarrierResult* out) {
  base::Random random(plan.seed);
  uint64_t last_arrival_ns = 0;
  for (bool complete = true; complete && schedules.epoch < plan.barriers; ++schedules.epoch) {
    const auto tell = [&](const sim::BarrierOutcome& so_far) {
      watch({schedules.epoch, so_far.ended + so_far.failed, world.ranks()});
    };
    const std::vector<uint64_t> delays_ns = plan.skew.delays_ns(world.ranks(), random);
    const sim::BarrierOutcome outcome =
        world.run(schedules, delays_ns, plan.within_ns,
                  watch ? sim::BarrierWorld::Watch(tell) : sim::BarrierWorld::Watch{});
    complete = add_outcome(world, outcome, out);
    last_arrival_ns = outcome.last_arrival_ns;
  }
  return last_arrival_ns;
}

/// Run the barriers back to back. @return as run_each().
uint64_t run_chain(const BarrierPlan& plan, const BarrierWatch& watch, sim::BarrierWorld& world,
                   SchemeSchedules& schedules, BarrierResult* out) {
  base::Random random(plan.seed);
  std::vector<std::vector<uint64_t>> pauses_ns(plan.barriers);
  for (std::vector<uint64_t>& pauses : pauses_ns) {
    pauses = plan.skew.delays_ns(world.ranks(), random);
  }
  const auto pause_ns = [&](uint32_t rank, uint32_t barrier) {
    return pauses_ns[barrier].empty() ? 0 : pauses_ns[barrier][rank];
  };
  const auto tell = [&](const sim::BarrierOutcome& so_far) {
    const auto times = world.times();
    const auto done =
        std::ranges::find_if(times, [&](const auto& one) { return one.left != world.ranks(); });
    watch(
        {static_cast<uint32_t>(done - times.begin()), so_far.ended + so_far.failed, world.ranks()});
  };
  const sim::BarrierOutcome outcome =
      world.run_back_to_back(schedules, plan.barriers, pause_ns, plan.within_ns,
                             watch ? sim::BarrierWorld::Watch(tell) : sim::BarrierWorld::Watch{});
  static_cast<void>(add_outcome(world, outcome, out));
  return outcome.last_arrival_ns;
}

}  // namespace

uint64_t Distribution::at(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (const auto& [value, count] : counts_) {
    seen += count;
    if (seen >= std::max<uint64_t>(wanted, 1)) {
      return value;
    }
  }
  return 0;
}

double BarrierResult::bound_ratio() const {
  return bound_ns == 0 ? 0.0
                       : static_cast<double>(latency_ns.at(0.5)) / static_cast<double>(bound_ns);
}

int resolve_schedule(const std::string& text, const sim::NetworkTopology& topology, uint32_t ranks,
                     barrier::Scheme* scheme, std::string* error) {
  std::string full = text.empty() ? best_schedule(topology, ranks) : text;
  if (full == "torus" || full == "dimensions" || full == "mesh") {
    const std::vector<uint32_t> lengths = lengths_of(topology);
    if (lengths.empty()) {
      return base::fail(error, "schedule '%s': the topology is no grid; write %s:8x4x4",
                        full.c_str(), full.c_str());
    }
    for (size_t d = 0; d < lengths.size(); ++d) {
      full += (d == 0 ? ":" : "x") + std::to_string(lengths[d]);
    }
  }
  barrier::Scheme parsed;
  int rc = barrier::parse_scheme(full, &parsed, error);
  rc = rc != 0 ? rc : barrier::check_fits(parsed, ranks, error);
  if (rc == 0) {
    *scheme = parsed;
  }
  return rc;
}

int run_barriers(const BarrierPlan& plan, const BarrierWatch& watch, BarrierResult* out,
                 std::string* error) {
  sim::NetworkTopology topology;
  int rc = sim::NetworkTopology::create(plan.topology, &topology, error);
  rc = rc != 0 ? rc : check_plan(plan, topology, error);
  if (rc != 0) {
    return rc;
  }
  BarrierResult result;
  result.nodes = topology.nodes();
  result.ranks = ranks_of(plan, topology);
  const uint32_t members = place_of(plan, result.ranks, 0).nodes;
  result.lengths = lengths_of(topology);
  result.diameter = topology.diameter();
  result.bound_ns = uint64_t{result.diameter} * (plan.hop_ns + plan.serialisation_ns);
  barrier::Scheme scheme;
  rc = resolve_schedule(plan.schedule, topology, members, &scheme, error);
  rc = rc != 0 ? rc : barrier::count_rounds(scheme, members, &result.rounds);
  result.schedule = barrier::to_string(scheme);
  std::unique_ptr<sim::BarrierWorld> world;
  rc = rc != 0 ? rc
               : sim::BarrierWorld::create(std::move(topology), settings_of(plan, result.ranks),
                                           &world, error);
  if (rc != 0) {
    return rc;
  }
  schedule_deaths(plan, world->network());
  SchemeSchedules schedules(scheme, members);
  const double start_s = cpu_seconds();
  const uint64_t last_arrival_ns = plan.back_to_back
                                       ? run_chain(plan, watch, *world, schedules, &result)
                                       : run_each(plan, watch, *world, schedules, &result);
  result.seconds = cpu_seconds() - start_s;
  note_end(*world, last_arrival_ns, &result);
  *out = std::move(result);
  return 0;
}

}  // namespace rio::simapp
