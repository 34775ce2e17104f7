/// @file
/// One measured run: threads that poll the streams, and a conductor that starts, stops and drains.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "apps/testpmd/mode.hpp"

namespace rio::testpmd {

/// Exit codes of the program.
enum ExitCode : int { kExitOk = 0, kExitUsage = 1, kExitVerify = 2, kExitCard = 3 };

/// Figures of a port at one time, or of all.
struct PortFigures : Figures<uint64_t> {
  std::string label;
  PortFigures& operator+=(const PortFigures& other);
  [[nodiscard]] PortFigures since(const PortFigures& before) const;
};

/// The result of a run.
struct RunResult {
  const Mode* mode = nullptr;
  uint32_t size_bytes = 0;
  double seconds = 0;                ///< that were measured
  std::vector<PortFigures> streams;  ///< of the measured time
  PortFigures sum;
  Histogram latency;  ///< TSC ticks
  VerifyTotals verify;
  bool verified = false;
  std::string described;         ///< the traffic: "64 bytes"
  uint64_t violations = 0;       ///< barriers left before the last member had arrived
  DriverCounts driver;           ///< of the whole run
  uint64_t driver_messages = 0;  ///< received in the whole run
  uint32_t lcores = 0;
  bool is_model = false;
  int exit_code = kExitOk;
  std::string trouble;  ///< why the exit code is kExitCard
};

/// Start it, watch it, ask it to stop, take its result. Main thread.
class Run {
 public:
  /// @param lcores that poll, at least one; streams are dealt to them in turn.
  Run(const Mode& mode, const RunSetup& setup, Streams streams, std::vector<unsigned> lcores);
  ~Run();

  /// @return 0, or -EINVAL (no thread; `error` says why and what to do): nothing runs then.
  [[nodiscard]] int start(std::string* error);
  /// Any thread, any time, signal handlers included.
  void request_stop() { stop_requested_.store(true, std::memory_order_relaxed); }
  /// @return it is over, and result() may be called.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const;
  [[nodiscard]] RunResult result();

  /// The figures of all streams now. Any thread.
  [[nodiscard]] std::vector<PortFigures> snapshot() const;
  [[nodiscard]] const Mode& mode() const { return mode_; }
  [[nodiscard]] uint32_t size_bytes() const { return setup_.size_bytes; }

 private:
  enum class Phase : uint8_t { kWait, kRun, kDrain, kDone };

  void poll(const std::vector<Stream*>& mine, unsigned lcore);
  void conduct();
  void end_pollers();
  void measure();
  [[nodiscard]] bool card_is_gone() const;
  void drain();
  [[nodiscard]] uint64_t progress() const;
  [[nodiscard]] DriverCounts driver_now() const;

  const Mode& mode_;
  RunSetup setup_;
  Streams streams_;
  std::vector<unsigned> lcores_;
  std::vector<std::jthread> pollers_;
  std::jthread conductor_;
  std::atomic<Phase> phase_{Phase::kWait};
  std::atomic<bool> stop_requested_{false};
  std::atomic<bool> over_{false};
  bool drained_ = true;
  RunResult result_;
};

}  // namespace rio::testpmd
