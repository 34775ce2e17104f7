/// @file
/// Options of commands that look again and again.
#pragma once

#include <cstdint>

#include <CLI/CLI.hpp>

namespace rio::tool {

/// --interval and --count. One thread.
class Pace {
 public:
  /// Give `command` the options.
  void add_to(CLI::App& command);
  /// How many times were asked for; 0: for ever.
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] double interval_s() const { return interval_s_; }
  /// Call after each look. Sleeps until the next one is due.
  /// @return false: that was the last, or the reader of the output has gone.
  [[nodiscard]] bool next();

 private:
  double interval_s_ = 1.0;
  uint64_t count_ = 0;
  uint64_t done_ = 0;
};

}  // namespace rio::tool
