/// @file
/// Measures the timed pieces of an iteration.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

namespace rio::bench {

/// For benchmarks with UseManualTime(): sums up the time between start() and stop(). Reading the
/// clock twice costs some 50 ns, so put hundreds of messages in between.
class Timer {
 public:
  explicit Timer(benchmark::State& state) : state_(state) {}
  void start() { begin_ = Clock::now(); }
  void stop() { sum_ += Clock::now() - begin_; }
  /// Ends the iteration. @param messages moved in it.
  void done(uint64_t messages) {
    state_.SetIterationTime(std::chrono::duration<double>(sum_).count());
    sum_ = {};
    messages_ += messages;
    state_.SetItemsProcessed(static_cast<int64_t>(messages_));
  }

 private:
  using Clock = std::chrono::steady_clock;
  benchmark::State& state_;
  Clock::time_point begin_;
  Clock::duration sum_{};
  uint64_t messages_ = 0;
};

}  // namespace rio::bench
