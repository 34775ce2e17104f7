#include "apps/tool/pace.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

#include "apps/common/std_streams.hpp"

namespace rio::tool {
namespace {

constexpr double kIntervalMinS = 0.001;
constexpr double kIntervalMaxS = 86400;
constexpr uint64_t kCountMax = 1000000000;

}  // namespace

void Pace::add_to(CLI::App& command) {
  command.add_option("--interval", interval_s_, "Seconds between two looks")
      ->check(CLI::Range(kIntervalMinS, kIntervalMaxS))
      ->check(CLI::Validator(  // CLI::Range lets nan through
          [](const std::string& text) {
            return text.find_first_of("nN") == std::string::npos ? std::string()
                                                                 : "'" + text + "' is no number";
          },
          ""))
      ->capture_default_str();
  command.add_option("--count", count_, "How many looks; 0: until it is interrupted")
      ->check(CLI::Range(uint64_t{0}, kCountMax))
      ->capture_default_str();
}

bool Pace::next() {
  std::fflush(stdout);
  ++done_;
  if ((count_ != 0 && done_ >= count_) || apps::output_is_lost()) {
    return false;
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(interval_s_));
  return true;
}

}  // namespace rio::tool
