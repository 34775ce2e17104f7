/// @file
/// The barriers of a process, behind the calls of rio_fi_barrier.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lib/barrier/group.hpp"
#include "lib/job/name.hpp"
#include "lib/job/rio_fi_barrier.h"
#include "lib/msg/message_port.hpp"

namespace rio::job {

class Barriers;
class Process;

}  // namespace rio::job

/// A member's part of a group. If it outlives its port, it has failed.
struct rio_fi_group {
  rio::job::Barriers* owner;  ///< null: its port was closed
  std::unique_ptr<rio::barrier::Group> group;
};

namespace rio::job {

/// The groups of a process, which outlives this object. All functions are called under a Guard.
class Barriers {
 public:
  /// @return 0, or as barrier::BarrierContext::create().
  [[nodiscard]] static int open(Process& process, std::unique_ptr<Barriers>* out);
  /// Groups that end() was not called for fail.
  ~Barriers();
  Barriers(const Barriers&) = delete;
  Barriers& operator=(const Barriers&) = delete;

  /// As rio_fi_barrier_calls::begin. @param out the caller's, until it has called end().
  [[nodiscard]] int begin(std::span<const Name> names, uint32_t rank, uint64_t key,
                          rio_fi_group** out);
  /// As rio_fi_barrier_calls::end. Deletes the group.
  void end(rio_fi_group* group);

  [[nodiscard]] Process& process() { return process_; }
  /// Hot. Let the groups work. Called after progress of the port.
  void attend() { context_->attend(); }
  /// Hot. Let the port and the groups work, without the endpoints.
  void progress() {
    context_->port().progress();
    context_->attend();
  }

 private:
  explicit Barriers(Process& process) : process_(process) {}

  Process& process_;
  std::unique_ptr<barrier::BarrierContext> context_;
  std::vector<rio_fi_group*> groups_;
};

}  // namespace rio::job
