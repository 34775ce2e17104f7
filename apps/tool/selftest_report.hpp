/// @file
/// The result of a selftest, as text and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "pmd/selftest/selftest.hpp"

namespace rio::tool {

/// A selftest, with where and when it was run.
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
  std::vector<selftest::StepReport> steps;

  [[nodiscard]] uint32_t count(selftest::Outcome outcome) const;
  /// kExitFound if a step failed.
  [[nodiscard]] int exit_code() const;
  [[nodiscard]] Json json() const;
  [[nodiscard]] std::string text() const;
};

/// Run all steps on a card, which is reset. @return the report; each step is in it.
[[nodiscard]] SelftestReport run_selftest(pmd::Bus& bus, const selftest::Config& config,
                                          const selftest::Progress& progress);

}  // namespace rio::tool
