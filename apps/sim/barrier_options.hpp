/// @file
/// Command-line options of rio-sim.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/sim/barrier_run.hpp"

namespace rio::simapp {

inline constexpr int kExitOk = 0;
inline constexpr int kExitWrong = 1;  ///< it could not be done, or a barrier went wrong
inline constexpr int kExitUsage = 2;

/// How results are shown.
struct OutputOptions {
  std::string json;    ///< file; "-": stdout; empty: text only
  bool exits = false;  ///< the JSON has the exit time of each rank of the last barrier
};

/// Options in the words of the user, which take_words() reads.
struct BarrierWords {
  std::string engine = "card";
  std::string skew = "none";
  std::string dead_at = "0";
};

/// Add the options of `rio-sim barrier` to a command. @param plan, words, output outlive the parse.
void add_barrier_options(CLI::App& app, BarrierPlan* plan, BarrierWords* words,
                         OutputOptions* output);
/// Add the options of network and card, which both commands have.
void add_network_options(CLI::App& app, BarrierPlan* plan);

/// Read the words into the plan. Any thread.
/// @param error one line with the remedy; set only on failure. @return 0, -EINVAL.
[[nodiscard]] int take_words(const BarrierWords& words, BarrierPlan* plan, std::string* error);

/// Print an error and its remedy. @return the exit code that was given.
int complain(const std::string& error, int code);

}  // namespace rio::simapp
