/// @file
/// What is going on, while it is: a table that is drawn anew on a terminal, lines elsewhere.
#pragma once

#include <chrono>
#include <vector>

#include "apps/testpmd/run.hpp"

namespace rio::testpmd {

/// Main thread.
class LiveTable {
 public:
  explicit LiveTable(const Run& run);
  /// Show what came since the last call.
  void show();
  /// Nothing is drawn over any more.
  void end() { lines_drawn_ = 0; }

 private:
  const Run& run_;
  bool tty_;
  size_t lines_drawn_ = 0;
  std::vector<PortFigures> before_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace rio::testpmd
