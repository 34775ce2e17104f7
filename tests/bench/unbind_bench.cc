// The kernel asks for a card while messages run: the model is the card, VFIO is a fake kernel.
//
//   unbind_bench [RUNS]
//
// Prints {"runs": RUNS, "worst_s": …, "median_s": …}: seconds from the request until the program
// has neither the device nor its group open, and its BAR reads all ones. Exit code: 0; 1: a card
// was not released within a minute.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "pmd/api/riopmd.hpp"
#include "tests/support/loop_traffic.hpp"
#include "tests/support/vfio_machine.hpp"

namespace rio::bench {
namespace {

using std::chrono::steady_clock;
constexpr uint64_t kMessagesBefore = 10'000;
constexpr double kGivenUpS = 60.0;

[[nodiscard]] double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

/// @return seconds; negative: the card was not released.
[[nodiscard]] double run() {
  test::VfioMachine machine;
  std::unique_ptr<pmd::Bus> bus;
  std::unique_ptr<Endpoint> card;
  if (machine.open(&bus) != 0 ||
      Endpoint::open(std::move(bus), test::LoopTraffic::config(), &card) != 0) {
    std::_Exit(2);
  }
  test::LoopTraffic traffic(*card);
  std::atomic<bool> end = false;
  std::thread program([&] {
    while (!end) {
      traffic.poll();
    }
  });
  while (traffic.received() < kMessagesBefore) {
    std::this_thread::yield();
  }
  const auto start = steady_clock::now();
  machine.kernel().signal(VFIO_PCI_REQ_IRQ_INDEX);
  while (!(machine.is_released() && card->card().gone()) && seconds_since(start) < kGivenUpS) {
    std::this_thread::yield();
  }
  const double seconds = seconds_since(start);
  end = true;
  program.join();
  return seconds < kGivenUpS ? seconds : -1.0;
}

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 20;
  rio::base::set_log_sink([](rio::base::LogLevel, const char*) noexcept {});
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    seconds.push_back(rio::bench::run());
    if (seconds.back() < 0) {
      return 1;
    }
  }
  if (seconds.empty()) {
    return 2;
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("{\"runs\": %zu, \"worst_s\": %.6f, \"median_s\": %.6f}\n", seconds.size(),
              seconds.back(), seconds[seconds.size() / 2]);
  return 0;
}
