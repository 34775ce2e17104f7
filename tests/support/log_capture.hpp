/// @file
/// Captures the control path's log, so that a test can look for the cause and the remedy.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"

namespace rio::test {

/// One object at a time, one thread.
class LogCapture {
 public:
  LogCapture() {
    lines().clear();
    base::set_log_sink([](base::LogLevel, const char* line) noexcept { lines().push_back(line); });
  }
  ~LogCapture() { base::set_log_sink(nullptr); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  /// Whether exactly one line was logged, and it holds all of `parts`. Forgets it.
  static bool one_line_with(const std::vector<std::string>& parts) {
    bool right = lines().size() == 1;
    for (const std::string& part : parts) {
      right = right && lines()[0].find(part) != std::string::npos;
    }
    lines().clear();
    return right;
  }
};

}  // namespace rio::test
