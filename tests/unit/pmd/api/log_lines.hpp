/// @file
/// Captures the driver's log while an object lives.
#pragma once

#include <mutex>
#include <string>

#include "base/log.hpp"

namespace rio::test {

class LogLines {
 public:
  LogLines() {
    text().clear();
    base::set_log_sink([](base::LogLevel, const char* line) noexcept {
      const std::lock_guard lock(mutex());
      text() += std::string(line) + "\n";
    });
  }
  ~LogLines() { base::set_log_sink(nullptr); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  /// Whether a line has `part`. Forgets all lines.
  [[nodiscard]] bool had(const std::string& part) {
    const std::lock_guard lock(mutex());
    const bool found = text().find(part) != std::string::npos;
    last_ = text();
    text().clear();
    return found;
  }
  /// The lines that had() searched last, for messages.
  [[nodiscard]] const std::string& last() const { return last_; }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::string& text() {
    static std::string lines;
    return lines;
  }
  std::string last_;
};

}  // namespace rio::test
