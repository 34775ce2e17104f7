/// @file
/// All that lives from set-up to exit: ports, memory, the run in progress, results so far.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/testpmd/run.hpp"
#include "pmd/cores/placement.hpp"

namespace rio::testpmd {

/// Main thread. Functions print nothing but warnings; errors go to `error`.
class TestRun {
 public:
  /// @param placement made before EAL pinned the thread; may be null.
  TestRun(const Options& o, std::unique_ptr<pmd::cores::Placement> placement)
      : options(o), placement_(std::move(placement)) {}
  /// Open the ports, take memory; once, first. @return 0, or -EINVAL with the remedy in `error`.
  [[nodiscard]] int open(std::string* error);

  Options options;

  /// Set up a run of one size and start it. @return 0, or -EINVAL with the remedy in `error`.
  [[nodiscard]] int start(uint32_t size_bytes, std::string* error);
  [[nodiscard]] Run* running() const { return run_.get(); }
  /// Wait for the end of the run, and keep its result. Does not ask it to stop.
  const RunResult& finish();

  [[nodiscard]] const std::vector<std::unique_ptr<TestPort>>& ports() const { return ports_; }
  [[nodiscard]] const std::vector<RunResult>& results() const { return results_; }
  /// Worst of all runs.
  [[nodiscard]] int exit_code() const;

 private:
  [[nodiscard]] int check(const Mode& mode, uint32_t size_bytes, std::string* error) const;
  [[nodiscard]] int connect(const Mode& mode, std::string* error);

  std::unique_ptr<pmd::cores::Placement> placement_;
  // The run ends first, then the ports stop, so that no card writes into buffers that are freed.
  MessagePool pool_;
  std::vector<std::unique_ptr<TestPort>> ports_;
  Verifier verifier_;
  std::unique_ptr<Run> run_;
  std::vector<RunResult> results_;
};

}  // namespace rio::testpmd
