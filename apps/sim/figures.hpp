/// @file
/// The figures of [S1], each a series of runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/sim/barrier_report.hpp"
#include "apps/sim/barrier_run.hpp"

namespace rio::simapp {

/// Values of one curve, one for each of FigureData::x.
struct FigureSeries {
  std::string name;
  std::vector<double> values;
};

/// A figure as numbers.
struct FigureData {
  std::string name;
  std::string title;
  std::string x_label;
  std::string y_label;
  bool is_x_logarithmic = false;
  std::vector<double> x;
  std::vector<FigureSeries> series;
};

/// Names of all figures, with what each shows, for a help text.
struct FigureName {
  const char* name;
  const char* text;
};
[[nodiscard]] const std::vector<FigureName>& figure_names();

/// Called after each run. @param runs how many are done.
using FigureWatch = std::function<void(size_t runs)>;

/// Run all configurations of a figure. @param base times of network, card and host; seed.
/// @param nodes_max most nodes of figures by nodes, 2 or more.
/// @param out set only on success. @param error one line with the remedy; set only on failure.
/// @return 0; -EINVAL: no such figure; as run_barriers(); -EPROTO: a run had violations or failed.
[[nodiscard]] int make_figure(const std::string& name, const BarrierPlan& base, uint32_t nodes_max,
                              const FigureWatch& watch, FigureData* out, std::string* error);

/// The torus of [S1]'s figures for a number of nodes, as "torus:8x4x4".
/// @param nodes a power of two, 2 or more.
[[nodiscard]] std::string torus_of(uint32_t nodes);

[[nodiscard]] Json to_json(const FigureData& figure);
/// The figure as a table for a terminal.
[[nodiscard]] std::string to_text(const FigureData& figure);

}  // namespace rio::simapp
