/// @file
/// Reads memory of another process.
#pragma once

#include <atomic>
#include <string>

#include "fpga/model/wire.hpp"

namespace rio::wire::shm {

/// By process_vm_readv, which the system may forbid. Whether it works is tried by reading a number
/// that is known: then it is the right process, too.
class ProcessPuller final : public model::Puller {
 public:
  /// @param allowed what the partner reads of it; cleared where the system stops to allow it, as
  /// for a process that gives up its privileges.
  ProcessPuller(int pid, std::atomic<uint32_t>* allowed) : pid_(pid), allowed_(allowed) {}

  /// @param at address of `expected` in the partner's process.
  [[nodiscard]] bool works(uint64_t at, uint64_t expected);
  /// Why reading fails, or has begun to fail, for a log line; empty: the partner is gone, or no
  /// read was tried.
  [[nodiscard]] std::string why_not() const;
  uint64_t pull(std::span<const model::PullPiece> pieces) override;

 private:
  int pid_;
  int refused_ = 0;  // -errno
  bool other_process_ = false;
  std::atomic<uint32_t>* allowed_;
};

}  // namespace rio::wire::shm
