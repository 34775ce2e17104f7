#include "base/log.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "base/no_cancel.hpp"

namespace rio::base {
namespace {

void write_to_stderr(LogLevel level, const char* line) noexcept {
  static constexpr const char* kPrefix[] = {"error", "warning", "info"};
  std::fprintf(stderr, "riopmd: %s: %s\n", kPrefix[static_cast<unsigned>(level)], line);
}

std::atomic<LogSink> g_sink{&write_to_stderr};

[[gnu::format(printf, 2, 0)]] void log_line(LogLevel level, const char* format, va_list args) {
  char line[1024];
  std::vsnprintf(line, sizeof line, format, args);
  const base::NoCancel no_cancel;
  // acquire: what the sink refers to is set up; pairs with the release in set_log_sink.
  g_sink.load(std::memory_order_acquire)(level, line);
}

}  // namespace

void set_log_sink(LogSink sink) {
  // release: what the sink refers to is visible first; pairs with the acquire in log_line.
  g_sink.store(sink != nullptr ? sink : &write_to_stderr, std::memory_order_release);
}

void log_error(const char* format, ...) {
  va_list args;
  va_start(args, format);
  log_line(LogLevel::kError, format, args);
  va_end(args);
}

void log_warning(const char* format, ...) {
  va_list args;
  va_start(args, format);
  log_line(LogLevel::kWarning, format, args);
  va_end(args);
}

void log_info(const char* format, ...) {
  va_list args;
  va_start(args, format);
  log_line(LogLevel::kInfo, format, args);
  va_end(args);
}

}  // namespace rio::base
