// Compares SimGrid with rio-sim: equal barriers on a torus whose links take a packet at once and
// delay it by a hop: without contention both must take the same time.
//   simgrid_check TOLERANCE_PERCENT SCHEDULE LENGTH...
// Prints one JSON object. Exit code: 0 they agree, 1 they differ, 2 wrong command line.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <simgrid/s4u.hpp>

#include "apps/sim/barrier_run.hpp"
#include "base/number.hpp"
#include "lib/barrier/scheme.hpp"

namespace {

namespace sg4 = simgrid::s4u;
using rio::barrier::Schedule;

// A second of SimGrid stands for a nanosecond, far above its precision.
constexpr double kHop = 108.0;
constexpr double kCard = 40.0;
constexpr double kAtOnce = 1e18;  // bytes a second

/// A member in SimGrid: it sends a round when all that it awaits in earlier rounds has come, and
/// ends when all that it awaits has come and its own notifications are answered.
class Member {
 public:
  Member(const Schedule& schedule, std::vector<sg4::Host*>& hosts, uint32_t rank,
         std::vector<std::unique_ptr<Member>>& members)
      : schedule_(schedule), hosts_(hosts), rank_(rank), members_(members) {}

  void operator()() {
    for (uint32_t round = 0; round < schedule_.rounds; ++round) {
      wait_until([&] { return has_all_below(round); });
      for (uint32_t way = 0; way < rio::barrier::kWays; ++way) {
        if (schedule_.sends(round, way)) {
          const uint32_t peer = schedule_.peer(round, way);
          sg4::Actor::create("notification", hosts_[rank_],
                             [this, round, peer] { send(round, peer); });
          ++unanswered_;
        }
      }
    }
    wait_until([&] { return has_all_below(schedule_.rounds) && unanswered_ == 0; });
    exit_ = sg4::Engine::get_clock();
  }
  [[nodiscard]] double exit() const { return exit_; }

 private:
  void wait_until(const std::function<bool()>& holds) {
    while (!holds()) {
      news_->acquire();
    }
  }
  [[nodiscard]] bool has_all_below(uint32_t rounds) const {
    for (uint32_t round = 0; round < rounds; ++round) {
      for (uint32_t way = 0; way < rio::barrier::kWays; ++way) {
        if (schedule_.awaits(round, way) && !got_.contains({round, schedule_.peer(round, way)})) {
          return false;
        }
      }
    }
    return true;
  }
  void send(uint32_t round, uint32_t peer) {
    sg4::this_actor::sleep_for(kCard);
    sg4::Comm::sendto(hosts_[rank_], hosts_[peer], 1);
    members_[peer]->receive(round, rank_);
    sg4::Comm::sendto(hosts_[peer], hosts_[rank_], 1);
    --unanswered_;
    news_->release();
  }
  void receive(uint32_t round, uint32_t source) {
    got_.emplace(round, source);
    news_->release();
  }

  Schedule schedule_;
  std::vector<sg4::Host*>& hosts_;
  uint32_t rank_;
  std::vector<std::unique_ptr<Member>>& members_;
  std::set<std::pair<uint32_t, uint32_t>> got_;  // round and source
  uint32_t unanswered_ = 0;
  sg4::SemaphorePtr news_ = sg4::Semaphore::create(0);
  double exit_ = 0.0;
};

/// @return the last exit in SimGrid; a negative value: a schedule cannot be made.
double run_simgrid(const rio::barrier::Scheme& scheme, const std::vector<unsigned long>& lengths,
                   uint32_t ranks) {
  std::vector<sg4::Host*> hosts(ranks);
  const auto add_host = [&](sg4::NetZone* zone, const std::vector<unsigned long>&,
                            unsigned long id) {
    hosts[id] = zone->create_host("node" + std::to_string(id), 1.0)->seal();
    return std::make_pair(hosts[id]->get_netpoint(),
                          static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  sg4::create_torus_zone("torus", nullptr, lengths, sg4::ClusterCallbacks(add_host), kAtOnce, kHop,
                         sg4::Link::SharingPolicy::FATPIPE)
      ->seal();
  std::vector<std::unique_ptr<Member>> members(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Schedule schedule;
    if (rio::barrier::make_schedule(scheme, ranks, rank, &schedule) != 0) {
      return -1.0;
    }
    members[rank] = std::make_unique<Member>(schedule, hosts, rank, members);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    sg4::Actor::create("member", hosts[rank], [&members, rank] { (*members[rank])(); });
  }
  sg4::Engine::get_instance()->run();
  double last = 0.0;
  for (const auto& member : members) {
    last = std::max(last, member->exit());
  }
  return last;
}

int check(double tolerance_percent, const std::string& name,
          const std::vector<unsigned long>& lengths) {
  rio::simapp::BarrierPlan plan;
  uint32_t ranks = 1;
  plan.topology = "torus";
  for (size_t d = 0; d < lengths.size(); ++d) {
    plan.topology += (d == 0 ? ":" : "x") + std::to_string(lengths[d]);
    ranks *= static_cast<uint32_t>(lengths[d]);
  }
  plan.schedule = name;
  plan.hop_ns = static_cast<uint32_t>(kHop);
  plan.serialisation_ns = 0;
  plan.card_ns = static_cast<uint32_t>(kCard);
  rio::simapp::BarrierResult result;
  rio::sim::NetworkTopology topology;
  rio::barrier::Scheme scheme;
  std::string error;
  if (rio::simapp::run_barriers(plan, {}, &result, &error) != 0 ||
      rio::sim::NetworkTopology::create(plan.topology, &topology, &error) != 0 ||
      rio::simapp::resolve_schedule(name, topology, ranks, &scheme, &error) != 0) {
    std::fprintf(stderr, "error: %s\n", error.c_str());
    return 2;
  }
  const double ours = static_cast<double>(result.latency_ns.at(0.5));
  const double theirs = run_simgrid(scheme, lengths, ranks);
  std::printf(
      "{\"topology\": \"%s\", \"schedule\": \"%s\", \"rio_sim_ns\": %.0f, \"simgrid_ns\": %.3f}\n",
      plan.topology.c_str(), result.schedule.c_str(), ours, theirs);
  return std::abs(ours - theirs) <= theirs * tolerance_percent / 100 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  double tolerance_percent = 0.0;
  std::vector<unsigned long> lengths;
  bool is_good = argc > 3 && rio::base::read_fraction(argv[1], 0.0, 100.0, &tolerance_percent);
  for (int i = 3; i < argc && is_good; ++i) {
    uint32_t length = 0;
    is_good = rio::base::read_number(argv[i], 1, 1000, &length);
    lengths.push_back(length);
  }
  if (!is_good) {
    std::fprintf(stderr, "usage: %s TOLERANCE_PERCENT SCHEDULE LENGTH...\n", argv[0]);
    return 2;
  }
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("contexts/stack-size:32");  // KiB, of each of thousands of actors
  return check(tolerance_percent, argv[2], lengths);
}
