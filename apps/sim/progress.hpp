/// @file
/// A line on a terminal that says how far a long run has come.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rio::simapp {

/// Writes to stderr, if that is a terminal: first after a second, then at most every fifth of a
/// second. One thread.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Removes the line.
  ~ProgressLine();

  /// Whether it is time for a new text. Cheap.
  [[nodiscard]] bool is_due();
  void show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point next_;
};

}  // namespace rio::simapp
