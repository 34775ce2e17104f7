/// @file
/// Interrupts of a queue pair: sleep instead of polling.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "pmd/dev/queue_pair.hpp"

namespace rio::pmd {

/// One vector for the rings of a queue pair that are to wake its thread: one descriptor to sleep
/// on. Control path but for ack().
class QueueIrq {
 public:
  /// Before the queue pair is opened. @param rings ring_bit()s; 0: no interrupts. @param config
  /// gets the vectors. @return 0; told in the log: -ENOTSUP (the card works only while it is
  /// polled, or has no vectors, or the bus has no interrupts), -EINVAL (no such ring); and as
  /// Bus::irq_fd().
  [[nodiscard]] int prepare(Bus& bus, const Caps& caps, uint32_t qp, uint32_t rings,
                            QueuePairConfig* config);

  /// Readable when an armed ring has completions; the bus's. -ENOENT: no interrupts were asked for.
  [[nodiscard]] int fd() const { return fd_; }

  /// Ask for an interrupt; look at the queues once more before sleeping. By the thread that polls
  /// them. @return 0, -EINVAL (a ring that is not open, or was not asked for; told in the log).
  [[nodiscard]] int arm(QueuePair& pair, const std::string& name, uint32_t rings) const;
  /// Take the interrupt that woke the thread. @return 0, also if there was none; -ENOENT, -errno of
  /// read().
  [[nodiscard]] int ack() const;

 private:
  Emulation* emulation_ = nullptr;
  int fd_ = -ENOENT;
  uint32_t rings_ = 0;
};

}  // namespace rio::pmd
