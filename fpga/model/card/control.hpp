/// @file
/// The control side of the BAR: reset, receive map, identity, starting and stopping rings,
/// interrupts. It polls the host-written words every few steps, and answers in the card-written
/// ones.
#pragma once

#include "fpga/model/card/engines.hpp"
#include "fpga/model/card/functions.hpp"

namespace rio::model {

class Control {
 public:
  Control(Core& core, Engines& engines) : core_(core), engines_(engines) {}
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Fill the BAR of a new card.
  void power_on();
  /// Process the host-written words.
  void scan();
  /// Set rings to STOPPED that are being stopped and have nothing left in flight.
  void finish_stops();
  /// Raise interrupts that are armed and due.
  void interrupts();
  /// Forget all messages under way and stop all rings; virtual functions lose their queue pairs.
  /// Host-written words stay.
  void reset(uint32_t gen_ack);
  /// Lose all state, including host-written words, as an external reset does. The host then sees
  /// GEN_ACK 0.
  void lose_state();
  /// Write a word in the BARs of all functions.
  void tell(uint32_t offset, uint32_t value) { functions_.tell(offset, value); }
  /// As Card::replug_vf().
  void replug_vf(uint32_t vf, const FunctionEnds& ends) { functions_.replug(vf, ends); }
  /// Write the counters of block PORT and the link state.
  void tell_port();
  /// Find rings whose memory the host has unmapped; stop those that run.
  void check_ring_memory();

  /// Forget all messages under way of one pair, and stop its rings.
  void reset_pair(Pair& pair);

  [[nodiscard]] bool stopping() const { return (core_.chores & kStopChore) != 0; }
  /// Whether an interrupt is delayed by moderation.
  [[nodiscard]] bool interrupt_waits() const { return interrupt_waits_; }

 private:
  void default_host_words();
  void read_owners();
  void read_timers();
  void scan_pair(Pair& pair);
  void start_ring(Ring& ring, uint16_t gen);
  void stop_ring(Ring& ring, uint16_t gen);
  [[nodiscard]] regs::RingError load_ring(Ring& ring);
  [[nodiscard]] bool map_ring(Ring& ring);
  void set_dedicated(const Ring& ring, bool open);
  void begin_stop(Ring& ring);
  void set_stopping(bool stopping);

  Core& core_;
  Engines& engines_;
  Functions functions_{core_, [this](Pair& pair) { reset_pair(pair); }};
  uint32_t generation_ = 0;  // HostMemory::generation() at the last check
  bool interrupt_waits_ = false;
};

}  // namespace rio::model
