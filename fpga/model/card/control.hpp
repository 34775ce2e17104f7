/// @file
/// The control side of the BAR: reset, receive map, identity, starting and stopping rings,
/// interrupts. Looks at the host-written words now and then and answers in the card-written ones.
#pragma once

#include "fpga/model/card/engines.hpp"

namespace rio::model {

class Control {
 public:
  Control(Core& core, Engines& engines) : core_(core), engines_(engines) {}

  /// Fill the BAR of a new card.
  void power_on();
  /// Look at the host-written words.
  void scan();
  /// Rings that are being stopped and have nothing in flight any more become STOPPED.
  void finish_stops();
  /// Raise what is armed and due.
  void interrupts();
  /// Forget all messages under way and stop all rings. Memory that the host wrote stays.
  void reset(uint32_t gen_ack);
  /// Lose all state, as a reset from outside does: the host's words as well. It sees GEN_ACK 0.
  void lose_state();
  /// Write the counters of block PORT and the link state.
  void tell_port();
  /// Whether the host's memory under running rings is still mapped; stops those where it is not.
  void check_ring_memory();

  [[nodiscard]] bool stopping() const { return stopping_; }
  /// Whether one is due, but not yet, for its moderation.
  [[nodiscard]] bool interrupt_waits() const { return interrupt_waits_; }

 private:
  void default_host_words();
  void read_owners();
  void read_timers();
  void scan_pair(Pair& pair);
  void start_ring(Pair& pair, uint32_t number, uint16_t gen);
  void stop_ring(Pair& pair, uint32_t number, uint16_t gen);
  [[nodiscard]] regs::RingError load_ring(Pair& pair, uint32_t number);
  [[nodiscard]] bool map_ring(Ring& ring);
  void set_dedicated(Pair& pair, uint32_t number, bool open);
  void begin_stop(Pair& pair, uint32_t number);

  Core& core_;
  Engines& engines_;
  uint32_t generation_ = 0;  // of host memory
  bool stopping_ = false;
  bool interrupt_waits_ = false;
};

}  // namespace rio::model
