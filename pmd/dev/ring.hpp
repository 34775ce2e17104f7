/// @file
/// The common part of all rings off the hot path: memory, start, stop, state.
#pragma once

#include <cstdint>
#include <string>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/caps.hpp"
#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// How a ring is set up. regs: QP.RING_*.
struct RingConfig {
  uint32_t qp = 0;                     ///< queue pair
  uint32_t ring = 0;                   ///< regs::Ring, 0 to 15
  uint32_t log2 = 9;                   ///< log2 of the entries, within Caps
  uint32_t start_index = 0;            ///< first free-running index; anything (tests of the wrap)
  uint32_t timeout_ms = kStopSlackMs;  ///< of starts and stops: see stop_limit_ms()
  int irq_vector = -1;                 ///< -1: no interrupt
  uint16_t irq_moderation_us = 0;
  uint32_t source = 0;  ///< dedicated rings: source ID that the ring takes
  uint32_t mbox = 0;    ///< dedicated rings: mailbox, 0 to 3
  bool push =
      false;  ///< transmit: short bursts go through the card's slots; needs Caps::push_slots
  bool times = false;            ///< shared receive: RxMessage::time_ticks is wanted
  uint32_t barrier_resends = 3;  ///< barrier: how often a notification is sent again
  uint32_t barrier_reserve = 0;  ///< barrier: early notifications for which it sets room aside
};

/// Bytes of a ring's entries.
struct RingShape {
  uint32_t entry_bytes;  ///< 0: the ring has completions only (doorbell, event)
  uint32_t cpl_bytes;
  uint32_t format = 0;     ///< regs: RING_FORMAT.COMPLETION
  uint32_t more_cpls = 0;  ///< completions that the ring needs beside those of its entries
};

/// Memory and state of one ring. Control path, one thread. The card owns the memory between start()
/// and a successful stop(). The destructor stops the ring; if the card does not answer, the memory
/// stays allocated, so that the card cannot write into another owner's.
class Ring {
 public:
  Ring() = default;
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Check the configuration, allocate and fill the memory, start the ring and wait for the echo.
  /// Once per object. @param bus outlives the object.
  /// @return 0, -EINVAL (size, vector, mailbox), -ENOTSUP (no slots), -ENOENT (the queue pair has
  /// no such ring), -EBUSY (it runs), -ENOMEM, -EIO (the card stopped it with an error),
  /// -ETIMEDOUT, -ENODEV (card gone).
  [[nodiscard]] int start(Bus& bus, const Caps& caps, const RingConfig& config,
                          const RingShape& shape);

  /// Stop the ring: posted entries complete with kFlushed and can still be reaped. Does nothing to
  /// a stopped ring. @return 0, -ETIMEDOUT, -ENODEV (card gone: it counts as stopped).
  [[nodiscard]] int stop();

  /// Stop in two steps, for callers that cannot wait: ask for the stop, then check stopped().
  void begin_stop();
  /// Whether the ring has stopped. One BAR read, two if all ones. @return 1, 0 (not yet), or
  /// -ENODEV (card gone: it counts as stopped).
  [[nodiscard]] int stopped();
  /// Start a stopped ring again in the same memory, once all completions are reaped; entries and
  /// completions begin at the index. @return as start().
  [[nodiscard]] int restart(uint32_t start_index);

  /// State of the ring. Two BAR reads. @param error, entry why and where the card stopped it; may
  /// be null. @return regs::RingState, or -ENODEV (card gone), -EPROTO (a state that the contract
  /// lacks).
  [[nodiscard]] int state(regs::RingError* error, uint32_t* entry);

  /// Whether the card runs or is stopping the ring, no matter which process started it. One BAR
  /// read, two if all ones. @return 1, 0, or -ENODEV.
  [[nodiscard]] static int busy(Mmio& bar, uint32_t qp, uint32_t ring);

  /// Stop a ring that a process started which has died; its memory is that process's. @return as
  /// stop().
  [[nodiscard]] static int stop_orphan(Bus& bus, uint32_t qp, uint32_t ring, uint32_t timeout_ms);

  /// True while the card may touch the ring's memory and what is posted in it.
  [[nodiscard]] bool running() const { return running_; }
  [[nodiscard]] const RingConfig& config() const { return config_; }
  [[nodiscard]] void* entries() const { return memory_.va; }
  [[nodiscard]] void* completions() const { return static_cast<uint8_t*>(memory_.va) + cpl_at_; }
  [[nodiscard]] uint32_t cpl_bytes() const { return shape_.cpl_bytes; }
  /// log2 of the completions.
  [[nodiscard]] uint32_t clog2() const { return clog2_; }
  [[nodiscard]] uint32_t tail_offset() const { return regs::qp::tail(config_.qp, config_.ring); }
  [[nodiscard]] uint32_t arm_offset() const { return regs::qp::arm(config_.qp, config_.ring); }
  [[nodiscard]] Bus& bus() const { return *bus_; }

 private:
  [[nodiscard]] std::string who() const;
  [[nodiscard]] int check(const Caps& caps) const;
  [[nodiscard]] int allocate();
  void empty_completions();
  void clear_slots();
  void write_config(bool relaxed);
  void write_tail();
  [[nodiscard]] uint32_t ask(bool run);
  [[nodiscard]] static bool answers(uint32_t seen, uint32_t gen, bool run);
  [[nodiscard]] int command(bool run);
  [[nodiscard]] int fail_start(int error);

  Bus* bus_ = nullptr;
  Mmio bar_;
  PollHook hook_;
  RingConfig config_;
  RingShape shape_{};
  uint32_t clog2_ = 0;
  DmaMemory memory_;
  size_t cpl_at_ = 0;
  uint32_t push_slots_ = 0;
  bool running_ = false;   // the card may touch the memory
  uint32_t stop_gen_ = 0;  // of the last begin_stop()
};

}  // namespace rio::pmd
