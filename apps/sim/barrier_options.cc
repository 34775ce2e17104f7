#include "apps/sim/barrier_options.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/formatted.hpp"
#include "base/number.hpp"

namespace rio::simapp {
namespace {

constexpr const char* kFooter = R"(Examples
  rio-sim barrier                                 8x4x4 nodes, the best schedule, on the card
  rio-sim barrier --schedule two-way              the schedule of [S1]
  rio-sim barrier --schedule classic --engine software --host-overhead 1100
  rio-sim barrier --skew uniform:2000 --barriers 100 --json -
  rio-sim barrier --loss 0.001 --timeout 20000 --barriers 100
  rio-sim barrier --dead-node 5 --timeout 20000 --resends 2
  rio-sim barrier --damq 1 --skew one-late:5000
  rio-sim barrier --ranks-per-node 16 --skew uniform:2000
  rio-sim barrier --topology torus:100x100x100 --barriers 2
  rio-sim barrier --exits --json exits.json && scripts/plot exits.json

Topologies are torus:8x4x4, mesh:10x10, fat-tree:16x3 and file:PATH. The latency is the time from
the last arrival to the last exit. A node leaves when all notifications that it awaits have come,
and its own are answered.

Rank i is node i. With --ranks-per-node N, node 0 has ranks 0 to N - 1, and so on. The ranks of a
node meet in its memory, where an arrival takes the time of --memory, one after the other. After the
last one the node's card takes part for all of them. Then they leave, one each time of --memory.

Exit code
  0  done
  1  a rank left before the last one arrived, a barrier failed and no fault explains it, or the
     JSON file could not be written
  2  wrong command line)";

constexpr uint64_t kHourNs = 3'600'000'000'000;
constexpr uint32_t kSecondNs = 1'000'000'000;
constexpr uint32_t kLocalMax = 1024;

CLI::Option* add_time(CLI::App& app, const char* name, uint32_t* out, const char* text) {
  return app.add_option(name, *out, text)
      ->check(CLI::Range(0u, kSecondNs))
      ->option_text("NS=" + std::to_string(*out));
}

void add_fault_options(CLI::App& app, BarrierPlan* plan, BarrierWords* words) {
  app.add_option("--loss", plan->loss, "Chance of a packet to be lost on a link")
      ->check([](const std::string& text) {
        double value = 0;
        return base::read_fraction(text, 0.0, 1.0, &value) ? "" : text + ": give 0.0 to 1.0";
      })
      ->capture_default_str();
  app.add_option("--dead", plan->dead, "Nodes that die, chosen by the seed")->capture_default_str();
  app.add_option("--dead-node", plan->dead_nodes, "Node that dies; may be given several times");
  app.add_option("--dead-at", words->dead_at,
                 "When nodes die, in ns: one time, or a range such as 0-2000")
      ->capture_default_str();
  app.add_option("--damq", plan->early, "Early notifications that a node has room for")
      ->capture_default_str();
  add_time(app, "--timeout", &plan->timeout_ns, "Time-out of responses")
      ->check(CLI::Range(1u, kSecondNs));
  app.add_option("--resends", plan->resend_limit, "Resends after time-outs, at most")
      ->check(CLI::Range(0u, 255u))
      ->capture_default_str();
  app.add_option("--deadline", plan->deadline_ns, "Time after which a host cancels; 0: never")
      ->check(CLI::Range(uint64_t{0}, kHourNs))
      ->option_text("NS=" + std::to_string(plan->deadline_ns));
}

/// Read "100" or "0-2000". @return whether it is such a text.
bool read_times(const std::string& text, uint64_t* from_ns, uint64_t* until_ns) {
  const size_t dash = text.find('-');
  uint64_t from = 0;
  uint64_t until = 0;
  if (!base::read_number(text.substr(0, dash), 0, kHourNs, &from) ||
      (dash != std::string::npos &&
       !base::read_number(text.substr(dash + 1), from, kHourNs, &until))) {
    return false;
  }
  *from_ns = from;
  *until_ns = dash == std::string::npos ? from : until;
  return true;
}

}  // namespace

void add_network_options(CLI::App& app, BarrierPlan* plan) {
  add_time(app, "--hop", &plan->hop_ns, "Delay of a link and the device at its end");
  add_time(app, "--serialisation", &plan->serialisation_ns, "Time of a packet on a link");
  add_time(app, "--card", &plan->card_ns, "Time of the card, a round");
  add_time(app, "--host-overhead", &plan->host_overhead_ns,
           "Time of the host in software, a round");
  app.add_option("--seed", plan->seed, "Seed of all that is random")->capture_default_str();
}

void add_barrier_options(CLI::App& app, BarrierPlan* plan, BarrierWords* words,
                         OutputOptions* output) {
  app.add_option("--topology", plan->topology, "Network; see below")->capture_default_str();
  app.add_option("--schedule", plan->schedule,
                 "torus, dimensions or mesh (of the topology's lengths, or as in\n"
                 "torus:8x4x4), classic, two-way, tree, tree:2; default: the best known");
  app.add_option("--ranks", plan->ranks, "Ranks; default: as many as the nodes have");
  auto* const local = app.add_option("--ranks-per-node", plan->ranks_per_node,
                                     "Ranks of a node, which meet in its memory first")
                          ->check(CLI::Range(1u, kLocalMax))
                          ->capture_default_str();
  add_time(app, "--memory", &plan->memory_ns, "Time of a rank in its node's memory")->needs(local);
  app.add_option("--barriers", plan->barriers, "Barriers, one after the other")
      ->check(CLI::Range(1u, 1u << 30))
      ->capture_default_str();
  app.add_flag("--back-to-back", plan->back_to_back,
               "A rank goes to the next barrier when it has left the last one, not\n"
               "when all have; --skew is then the pause, --within the bound of all");
  app.add_option("--engine", words->engine, "card: offloaded; software: the host runs each round")
      ->check(CLI::IsMember({"card", "software"}))
      ->capture_default_str();
  add_network_options(app, plan);
  add_time(app, "--host-in", &plan->host_in_ns, "From a node's arrival until the card starts");
  add_time(app, "--host-out", &plan->host_out_ns, "From the card's completion to the exit");
  app.add_option("--skew", words->skew,
                 "Arrivals: none, uniform:NS, exponential:NS (mean) or one-late:NS")
      ->capture_default_str();
  add_fault_options(app, plan, words);
  app.add_option("--within", plan->within_ns, "Longest virtual time of a barrier")
      ->check(CLI::Range(uint64_t{1}, kHourNs))
      ->option_text("NS=" + std::to_string(plan->within_ns));
  app.add_option("--json", output->json, "File to write a JSON object to; -: stdout");
  app.add_flag("--exits", output->exits, "JSON with the exit of each rank of the last barrier");
  app.footer(kFooter);
}

int take_words(const BarrierWords& words, BarrierPlan* plan, std::string* error) {
  if (const int rc = Skew::parse(words.skew, &plan->skew, error); rc != 0) {
    return rc;
  }
  if (!read_times(words.dead_at, &plan->dead_from_ns, &plan->dead_until_ns)) {
    return base::fail(error, "dead-at '%s': give a time in ns, up to an hour, or a range as 0-2000",
                      base::printable(words.dead_at).c_str());
  }
  plan->engine = words.engine == "software" ? EngineKind::kSoftware : EngineKind::kCard;
  return 0;
}

int complain(const std::string& error, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "rio-sim: error: %s\n", error.c_str());
  return code;
}

}  // namespace rio::simapp
