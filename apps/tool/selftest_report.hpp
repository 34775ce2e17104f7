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
  Json about;  ///< when, where and on what it was run; the first part of json()
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
