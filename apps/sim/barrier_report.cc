#include "apps/sim/barrier_report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/formatted.hpp"

namespace rio::simapp {
namespace {

using base::formatted;

double rate_of(const BarrierResult& result) {
  return result.seconds > 0.0 ? static_cast<double>(result.events) / result.seconds : 0.0;
}

Json to_json(const Distribution& times) {
  return {{"min", times.at(0.0)},
          {"median", times.at(0.5)},
          {"p99", times.at(0.99)},
          {"max", times.at(1.0)}};
}

std::string text_of(const Distribution& times) {
  return times.count() == 0
             ? "none"
             : "min " + with_commas(times.at(0.0)) + ", median " + with_commas(times.at(0.5)) +
                   ", p99 " + with_commas(times.at(0.99)) + ", max " + with_commas(times.at(1.0)) +
                   " ns";
}

std::vector<std::pair<const char*, uint64_t>> counters_of(const BarrierResult& result) {
  const model::barrier::Counters& engines = result.engines;
  return {{"sent", engines.sent},
          {"received", engines.received},
          {"early", engines.early},
          {"nacks_given", engines.nacks_given},
          {"nacks_taken", engines.nacks_taken},
          {"resent", engines.resent},
          {"stale", engines.stale},
          {"foreign", engines.foreign},
          {"cancelled", engines.cancelled}};
}

std::string engine_text(const BarrierPlan& plan) {
  if (plan.engine == EngineKind::kSoftware) {
    return formatted("software: host %u ns and card %u ns a round", plan.host_overhead_ns,
                     plan.card_ns);
  }
  return formatted("card: %u ns a round, host %u ns in and %u ns out", plan.card_ns,
                   plan.host_in_ns, plan.host_out_ns);
}

}  // namespace

std::string with_commas(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

Json to_json(const BarrierPlan& plan, const BarrierResult& result, bool exits) {
  Json json;
  json["topology"] = plan.topology;
  json["lengths"] = result.lengths;
  json["nodes"] = result.nodes;
  json["ranks"] = result.ranks;
  json["ranks_per_node"] = plan.ranks_per_node;
  json["memory_ns"] = plan.ranks_per_node != 1 ? plan.memory_ns : 0;
  json["schedule"] = result.schedule;
  json["rounds"] = result.rounds;
  json["engine"] = plan.engine == EngineKind::kSoftware ? "software" : "card";
  json["hop_ns"] = plan.hop_ns;
  json["serialisation_ns"] = plan.serialisation_ns;
  json["card_ns"] = plan.card_ns;
  json["host_overhead_ns"] = plan.engine == EngineKind::kSoftware ? plan.host_overhead_ns : 0;
  json["skew"] = plan.skew.text();
  json["seed"] = plan.seed;
  json["barriers"] = result.barriers;
  json["latency_ns"] = to_json(result.latency_ns);
  json["exits_ns"] = to_json(result.exits_ns);
  json["diameter"] = result.diameter;
  json["bound_ns"] = result.bound_ns;
  json["bound_ratio"] = result.bound_ratio();
  json["events"] = result.events;
  json["seconds"] = result.seconds;
  json["events_per_s"] = rate_of(result);
  json["memory_bytes"] = result.memory_bytes;
  json["left"] = result.left;
  json["failed"] = result.failed;
  json["waiting"] = result.waiting;
  json["dead"] = result.dead;
  json["violations"] = result.violations;
  for (const auto& [name, value] : counters_of(result)) {
    json["counters"][name] = value;
  }
  json["packets"] = {{"hops", result.network.hops},
                     {"lost", result.network.lost},
                     {"dropped", result.network.dropped}};
  if (exits) {
    json["rank_exits_ns"] = result.last_exits_ns;
  }
  return json;
}

std::string to_text(const BarrierPlan& plan, const BarrierResult& result) {
  std::string text;
  const auto add = [&](const char* label, const std::string& line) {
    text += formatted("%-10s %s\n", label, line.c_str());
  };
  add("topology", plan.topology + ": " + with_commas(result.nodes) + " nodes, diameter " +
                      std::to_string(result.diameter) + " hops");
  add("schedule", result.schedule + ": " + std::to_string(result.rounds) + " rounds, " +
                      with_commas(result.ranks) + " ranks");
  if (plan.ranks_per_node != 1) {
    add("nodes", formatted("%u ranks each, which meet in memory first, %u ns a rank",
                           plan.ranks_per_node, plan.memory_ns));
  }
  add("engine", engine_text(plan));
  add("barriers", with_commas(result.barriers) + " of " + with_commas(plan.barriers) + ", skew " +
                      plan.skew.text() + ", seed " + std::to_string(plan.seed));
  add("latency", text_of(result.latency_ns));
  add("exits", text_of(result.exits_ns));
  if (result.latency_ns.count() != 0) {
    add("bound", formatted("%.2f times the diameter's %s ns", result.bound_ratio(),
                           with_commas(result.bound_ns).c_str()));
  }
  add("events", with_commas(result.events) + formatted(" in %.2f s: %.1f million a second",
                                                       result.seconds, rate_of(result) * 1e-6));
  add("memory", with_commas(result.memory_bytes >> 20) + " MiB");
  std::string counters;
  for (const auto& [name, value] : counters_of(result)) {
    counters += (counters.empty() ? "" : ", ") + std::string(name) + " " + with_commas(value);
  }
  add("counters", counters);
  if (result.network.lost + result.network.dropped != 0) {
    add("packets", with_commas(result.network.lost) + " lost, " +
                       with_commas(result.network.dropped) + " dropped at dead nodes");
  }
  add("ends", with_commas(result.left) + " left, " + with_commas(result.failed) + " failed, " +
                  with_commas(result.waiting) + " waiting, " + with_commas(result.dead) + " dead");
  add("violations", with_commas(result.violations));
  return text;
}

int write_json(const Json& json, const std::string& path, std::string* error) {
  const std::string text = json.dump() + "\n";
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) {
    return 0;
  }
  const int number = errno != 0 ? errno : EIO;
  *error = path + ": " + std::strerror(number) + "; name another file with --json";
  return -number;
}

}  // namespace rio::simapp
