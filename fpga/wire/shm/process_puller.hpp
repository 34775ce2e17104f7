/// @file
/// Reads the memory of another process.
#pragma once

#include <atomic>
#include <string>

#include "fpga/model/wire.hpp"

namespace rio::wire::shm {

/// Reads by process_vm_readv, which the system may forbid. Reading a known number tests that it
/// works, and that it is the right process.
class ProcessPuller final : public model::Puller {
 public:
  /// @param allowed read by the partner; cleared once the system no longer allows reading, as when
  /// a process gives up its privileges.
  /// @param pid of the partner, in this process's pid namespace; 0: it is not in there.
  /// @param theirs, mine of model::Puller.
  ProcessPuller(int pid, std::atomic<uint32_t>* allowed, const model::LeaseWords* theirs = nullptr,
                model::LeaseWords* mine = nullptr)
      : Puller(theirs, mine), pid_(pid), allowed_(allowed) {}

  /// Test the reading. @param at address of `expected` in the partner's process.
  [[nodiscard]] bool works(uint64_t at, uint64_t expected);
  /// Whether the partner's process is there, but has other memory: it has called exec(), or is
  /// about to leave.
  [[nodiscard]] bool finds_other_memory() const { return other_memory_; }
  /// Why reading fails or has begun to fail, for a log line; empty: the partner is gone, or nothing
  /// was read yet.
  [[nodiscard]] std::string why_not() const;
  uint64_t pull(std::span<const model::PullPiece> pieces) override;

 private:
  int pid_;
  int refused_ = 0;  // -errno
  bool gone_ = false;
  bool other_memory_ = false;  // the process is there, the number is not
  std::atomic<uint32_t>* allowed_;
};

}  // namespace rio::wire::shm
