/// @file
/// How a step of a selftest went.
#pragma once

#include <cstdint>
#include <string>

namespace rio::selftest {

enum class Outcome : uint8_t { kPass, kFail, kSkipped };

/// "pass", "fail", "skipped".
[[nodiscard]] const char* name(Outcome outcome);

/// Result of one step.
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

}  // namespace rio::selftest
