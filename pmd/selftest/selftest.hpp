/// @file
/// Selftest of an unused card: every step, each with its verdict.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"

namespace rio::selftest {

enum class Outcome : uint8_t { kPass, kFail, kSkipped };

/// "pass", "fail", "skipped".
[[nodiscard]] const char* name(Outcome outcome);

/// Result of one step.
struct Verdict {
  Outcome outcome = Outcome::kPass;
  std::string reason{};  ///< of a failure or a skip; a remark otherwise
  uint64_t done = 0;     ///< things that were tried; run() sets it, and the bytes
  std::string unit{};    ///< what they are: "messages"
  uint64_t bytes = 0;    ///< that were compared, one by one
};

/// The user's choices.
struct Config {
  bool quick = false;
  uint64_t seed = 1;
  uint32_t dest_id = 0x100;  ///< of queue pair 0, while the test runs
  bool must_loop = false;    ///< a link that does not come back to the card is a failure
  bool has_peer = false;
  uint32_t peer = 0;             ///< destID that messages go to, if has_peer
  uint32_t patience_ms = 10000;  ///< nothing moves for so long: the step fails
  uint32_t link_timeout_ms = 3000;
};

/// Told now and then how far a step is. @param step name; @param done, total things tried; total 0
/// before it is known.
using Progress = std::function<void(const char* step, uint64_t done, uint64_t total)>;

class Bench;

/// A step.
struct Step {
  const char* name;
  const char* help;
  Verdict (*run)(Bench& bench);  ///< for run() only; throws a Fault
};
/// All steps, in their order.
[[nodiscard]] std::span<const Step> steps();

/// How a step went.
struct StepReport {
  std::string step;
  Verdict verdict;
  double seconds = 0;
};

/// Run all steps. The card is the test's: it is reset. Memory that a card without answer may still
/// write to stays allocated. Control path, one thread. @return a report for each step.
[[nodiscard]] std::vector<StepReport> run(pmd::Bus& bus, const Config& config,
                                          const Progress& progress);

}  // namespace rio::selftest
