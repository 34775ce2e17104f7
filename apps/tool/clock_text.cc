#include "apps/tool/clock_text.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace rio::tool {
namespace {

std::tm utc(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string utc_now() {
  const std::tm parts = utc(std::time(nullptr));
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string time_of_day() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::tm parts = utc(system_clock::to_time_t(now));
  const auto ms = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  char text[32];
  const size_t used = std::strftime(text, sizeof(text), "%H:%M:%S", &parts);
  std::snprintf(text + used, sizeof(text) - used, ".%03d", static_cast<int>(ms));
  return text;
}

}  // namespace rio::tool
