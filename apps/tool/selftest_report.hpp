/// @file
/// What a selftest found, in a form fit to be kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/tool/context.hpp"

namespace rio::tool {

enum class Outcome : uint8_t { kPass, kFail, kSkipped };

/// "pass", "fail", "skipped".
[[nodiscard]] const char* name(Outcome outcome);

/// The result of a step.
struct Verdict {
  Outcome outcome = Outcome::kPass;
  std::string reason;  ///< of a failure or a skip; a remark otherwise
  uint64_t done = 0;   ///< things that were tried
  std::string unit;    ///< what they are: "messages"
  uint64_t bytes = 0;  ///< that were compared, one by one
};

[[nodiscard]] Verdict pass(uint64_t done, std::string unit, uint64_t bytes = 0);
[[nodiscard]] Verdict fail(std::string reason);
[[nodiscard]] Verdict skip(std::string reason);

/// A step of the report.
struct StepReport {
  std::string step;
  Verdict verdict;
  double seconds = 0;
};

/// The whole.
struct SelftestReport {
  std::string date;  ///< UTC
  std::string card;
  bool emulated = false;
  std::string gateware;  ///< "1.0.0"
  uint32_t build = 0;    ///< stamp of the gateware, Unix time
  std::string tool;      ///< version of this program
  std::string host;      ///< of the machine
  uint64_t seed = 0;     ///< of the bytes that were sent
  bool quick = false;
  std::string peer;  ///< destID, empty without one
  std::vector<StepReport> steps;

  [[nodiscard]] uint32_t count(Outcome outcome) const;
  /// kExitFound if a step failed.
  [[nodiscard]] int exit_code() const;
  [[nodiscard]] Json json() const;
  [[nodiscard]] std::string text() const;
};

}  // namespace rio::tool
