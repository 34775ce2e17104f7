// The minimum time for one core to notify another one: a cache line goes to and fro.
//   cacheline CPU CPU [SECONDS]
// Prints one JSON object: percentiles over batches of the time one way.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kBatch = 100;  // round trips in a batch, which is timed as a whole
constexpr uint64_t kStop = ~uint64_t{0};

struct alignas(128) Line {
  std::atomic<uint64_t> turn{0};
};

bool pin(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

/// Answers each even number with the next one.
void answer(Line& line, unsigned cpu, std::atomic<bool>& pinned) {
  if (!pin(cpu)) {
    std::fprintf(stderr, "error: no CPU %u\n", cpu);
    std::exit(1);
  }
  pinned = true;
  for (uint64_t expected = 2;; expected += 2) {
    uint64_t seen = 0;
    // acquire and release: they pair with the other side's
    while ((seen = line.turn.load(std::memory_order_acquire)) != expected) {
      if (seen == kStop) {
        return;
      }
    }
    line.turn.store(expected + 1, std::memory_order_release);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CPU CPU [SECONDS]\n", argv[0]);
    return 1;
  }
  const auto first = static_cast<unsigned>(std::atoi(argv[1]));
  const auto second = static_cast<unsigned>(std::atoi(argv[2]));
  const double seconds = argc > 3 ? std::atof(argv[3]) : 1.0;
  Line line;
  std::atomic<bool> pinned{false};
  std::thread other([&] { answer(line, second, pinned); });
  if (!pin(first)) {
    std::fprintf(stderr, "error: no CPU %u\n", first);
    std::exit(1);
  }
  while (!pinned) {
  }
  std::vector<double> one_way_ns;
  one_way_ns.reserve(1u << 20);
  uint64_t turn = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (auto start = Clock::now(); start < end && one_way_ns.size() < one_way_ns.capacity();) {
    for (uint32_t i = 0; i < kBatch; ++i) {
      turn += 2;
      line.turn.store(turn, std::memory_order_release);
      while (line.turn.load(std::memory_order_acquire) != turn + 1) {
      }
    }
    const auto now = Clock::now();
    one_way_ns.push_back(std::chrono::duration<double, std::nano>(now - start).count() /
                         (2.0 * kBatch));
    start = now;
  }
  line.turn.store(kStop, std::memory_order_release);
  other.join();
  std::sort(one_way_ns.begin(), one_way_ns.end());
  const auto at = [&](double part) {
    return one_way_ns[static_cast<size_t>(part * static_cast<double>(one_way_ns.size() - 1))];
  };
  std::printf(
      "{\"batches\": %zu, \"round_trips_each\": %u, \"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, "
      "\"min\": %.1f}\n",
      one_way_ns.size(), kBatch, at(0.5), at(0.9), at(0.99), at(0.0));
  return 0;
}
