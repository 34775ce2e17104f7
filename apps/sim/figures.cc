#include "apps/sim/figures.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "apps/common/columns.hpp"
#include "base/formatted.hpp"

namespace rio::simapp {
namespace {

constexpr uint32_t kPaperNodes = 128;
constexpr uint32_t kSkewBarriers = 64;

/// A way to run a barrier, as a curve.
struct Way {
  const char* name;
  const char* schedule;
  EngineKind engine;
};
constexpr Way kClassicSoftware{"classic, software", "classic", EngineKind::kSoftware};
constexpr Way kTwoWaySoftware{"two-way, software", "two-way", EngineKind::kSoftware};
constexpr Way kClassicCard{"classic, card", "classic", EngineKind::kCard};
constexpr Way kTwoWayCard{"two-way, card [S1]", "two-way", EngineKind::kCard};
constexpr Way kDimensionsCard{"dimensions, card", "dimensions", EngineKind::kCard};
constexpr Way kTorusCard{"torus, card", "torus", EngineKind::kCard};

/// Runs configurations, and keeps the first error.
class Runner {
 public:
  Runner(const BarrierPlan& base, const FigureWatch& watch, std::string* error)
      : base_(base), watch_(watch), error_(error) {}

  [[nodiscard]] int rc() const { return rc_; }
  [[nodiscard]] BarrierPlan plan(const Way& way, uint32_t nodes) const {
    BarrierPlan plan = base_;
    plan.topology = torus_of(nodes);
    plan.schedule = way.schedule;
    plan.engine = way.engine;
    return plan;
  }
  /// @return the median latency in ns; 0 after a failure.
  double latency_ns(const BarrierPlan& plan) {
    BarrierResult result;
    rc_ = rc_ != 0 ? rc_ : run_barriers(plan, {}, &result, error_);
    if (rc_ != 0) {
      return 0.0;
    }
    if (result.violations + result.failed + result.waiting != 0) {
      *error_ = plan.topology + ", schedule " + plan.schedule + ": a barrier was not complete";
      rc_ = -EPROTO;
      return 0.0;
    }
    bound_ns_ = static_cast<double>(result.bound_ns);
    if (watch_) {
      watch_(++runs_);
    }
    return static_cast<double>(result.latency_ns.at(0.5));
  }
  /// Of the last run.
  [[nodiscard]] double bound_ns() const { return bound_ns_; }

 private:
  const BarrierPlan& base_;
  const FigureWatch& watch_;
  std::string* error_;
  int rc_ = 0;
  size_t runs_ = 0;
  double bound_ns_ = 0.0;
};

/// Latency by number of nodes, one curve a way.
FigureData by_nodes(Runner& runner, const std::vector<Way>& ways, uint32_t nodes_max) {
  FigureData figure;
  figure.x_label = "nodes";
  figure.y_label = "latency, us";
  figure.is_x_logarithmic = true;
  for (uint32_t nodes = 2; nodes <= nodes_max; nodes *= 2) {
    figure.x.push_back(nodes);
  }
  FigureSeries bound{"diameter", {}};
  for (const Way& way : ways) {
    FigureSeries series{way.name, {}};
    bound.values.clear();
    for (const double nodes : figure.x) {
      series.values.push_back(runner.latency_ns(runner.plan(way, static_cast<uint32_t>(nodes))) /
                              1000);
      bound.values.push_back(runner.bound_ns() / 1000);
    }
    figure.series.push_back(series);
  }
  figure.series.push_back(bound);
  return figure;
}

FigureData nodes_figure(Runner& runner, uint32_t nodes_max) {
  FigureData figure =
      by_nodes(runner, {kClassicSoftware, kTwoWaySoftware, kClassicCard, kTwoWayCard, kTorusCard},
               nodes_max);
  figure.title = "Latency by nodes, software and card";
  return figure;
}

FigureData schemes_figure(Runner& runner, uint32_t nodes_max) {
  FigureData figure =
      by_nodes(runner, {kClassicCard, kTwoWayCard, kDimensionsCard, kTorusCard}, nodes_max);
  figure.title = "Latency by nodes on the card, by schedule";
  return figure;
}

/// Share of `than` that `time` saves, in percent.
double saved(double time, double than) {
  return than > 0.0 ? 100 * (1 - time / than) : 0.0;
}

FigureData overhead_figure(Runner& runner, uint32_t nodes_max) {
  FigureData figure;
  figure.title = base::formatted("Time saved on the card, by host overhead, %u nodes", kPaperNodes);
  figure.x_label = "host overhead a round, us";
  figure.y_label = "time saved, %";
  figure.series = {{"two-way [S1] to classic software", {}},
                   {"two-way [S1] to two-way software", {}},
                   {"two-way [S1] to two-way software, mean of 2 to 128 nodes", {}},
                   {"torus to classic software", {}}};
  std::vector<uint32_t> sizes;
  std::vector<double> two_way;
  for (uint32_t nodes = 2; nodes <= std::min(nodes_max, kPaperNodes); nodes *= 2) {
    sizes.push_back(nodes);
    two_way.push_back(runner.latency_ns(runner.plan(kTwoWayCard, nodes)));
  }
  const double torus = runner.latency_ns(runner.plan(kTorusCard, sizes.back()));
  for (uint32_t overhead_ns = 300; overhead_ns <= 2400; overhead_ns += 100) {
    const auto software = [&](const Way& way, uint32_t nodes) {
      BarrierPlan plan = runner.plan(way, nodes);
      plan.host_overhead_ns = overhead_ns;
      return runner.latency_ns(plan);
    };
    double mean = 0.0;
    double last = 0.0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      last = saved(two_way[i], software(kTwoWaySoftware, sizes[i]));
      mean += last / static_cast<double>(sizes.size());
    }
    const double classic = software(kClassicSoftware, sizes.back());
    figure.x.push_back(overhead_ns / 1000.0);
    figure.series[0].values.push_back(saved(two_way.back(), classic));
    figure.series[1].values.push_back(last);
    figure.series[2].values.push_back(mean);
    figure.series[3].values.push_back(saved(torus, classic));
  }
  return figure;
}

FigureData skew_figure(Runner& runner, uint32_t nodes_max) {
  const uint32_t nodes = std::min(nodes_max, kPaperNodes);
  FigureData figure;
  figure.title = base::formatted("Latency from the last arrival on, by skew, %u nodes", nodes);
  figure.x_label = "arrivals spread over, us";
  figure.y_label = "latency, us";
  for (uint32_t skew_us = 0; skew_us <= 20; skew_us += 2) {
    figure.x.push_back(skew_us);
  }
  for (const Way& way : {kClassicSoftware, kTwoWaySoftware, kTwoWayCard, kTorusCard}) {
    FigureSeries series{way.name, {}};
    for (const double skew_us : figure.x) {
      BarrierPlan plan = runner.plan(way, nodes);
      plan.skew = {SkewKind::kUniform, static_cast<uint64_t>(skew_us) * 1000};
      plan.barriers = kSkewBarriers;
      series.values.push_back(runner.latency_ns(plan) / 1000);
    }
    figure.series.push_back(series);
  }
  return figure;
}

}  // namespace

const std::vector<FigureName>& figure_names() {
  static const std::vector<FigureName> kNames = {
      {"nodes", "latency by nodes, in software and on the card ([S1], figure 8)"},
      {"schemes", "latency by nodes, classic against improved ([S1], figure 9)"},
      {"skew", "latency by the skew of arrivals ([S1], figure 10)"},
      {"overhead", "time saved by the host's overhead, which [S1] does not state"}};
  return kNames;
}

std::string torus_of(uint32_t nodes) {
  std::array<uint32_t, 3> lengths{1, 1, 1};
  for (uint32_t d = 0; nodes > 1; nodes /= 2, d = (d + 1) % 3) {
    lengths[d] *= 2;
  }
  std::string text = "torus";
  for (uint32_t d = 0; d < 3 && (d == 0 || lengths[d] > 1); ++d) {
    text += (d == 0 ? ':' : 'x') + std::to_string(lengths[d]);
  }
  return text;
}

int make_figure(const std::string& name, const BarrierPlan& base, uint32_t nodes_max,
                const FigureWatch& watch, FigureData* out, std::string* error) {
  Runner runner(base, watch, error);
  FigureData figure;
  if (name == "nodes") {
    figure = nodes_figure(runner, nodes_max);
  } else if (name == "schemes") {
    figure = schemes_figure(runner, nodes_max);
  } else if (name == "skew") {
    figure = skew_figure(runner, nodes_max);
  } else if (name == "overhead") {
    figure = overhead_figure(runner, nodes_max);
  } else {
    return base::fail(error, "figure '%s': there are nodes, schemes, skew and overhead",
                      name.c_str());
  }
  if (runner.rc() == 0) {
    figure.name = name;
    *out = std::move(figure);
  }
  return runner.rc();
}

Json to_json(const FigureData& figure) {
  Json json;
  json["figure"] = figure.name;
  json["title"] = figure.title;
  json["x_label"] = figure.x_label;
  json["y_label"] = figure.y_label;
  json["x_logarithmic"] = figure.is_x_logarithmic;
  json["x"] = figure.x;
  for (const FigureSeries& series : figure.series) {
    json["series"].push_back({{"name", series.name}, {"values", series.values}});
  }
  return json;
}

std::string to_text(const FigureData& figure) {
  std::string text = figure.title + "; " + figure.y_label + "\n";
  for (size_t i = 0; i < figure.series.size(); ++i) {
    text +=
        base::formatted("  %c  %s\n", static_cast<char>('A' + i), figure.series[i].name.c_str());
  }
  const size_t first = std::max<size_t>(apps::columns_of(figure.x_label), 6);
  text += figure.x_label;
  for (size_t i = 0; i < figure.series.size(); ++i) {
    text += base::formatted("%8c", static_cast<char>('A' + i));
  }
  text += '\n';
  for (size_t row = 0; row < figure.x.size(); ++row) {
    text += base::formatted("%*g", static_cast<int>(first), figure.x[row]);
    for (const FigureSeries& series : figure.series) {
      text += base::formatted("%8.2f", series.values[row]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace rio::simapp
