/// @file
/// Event queue: port-writes, ring errors, link changes.
#pragma once

#include <cstdint>

#include "pmd/dev/notice_queue.hpp"

namespace rio::pmd {

/// Events of a queue pair. The ring has completions only; the card counts what finds no room and
/// tells so (regs::EventType::kOverflow). All functions belong to one thread. regs: event_cpl.
class alignas(64) EventQueue : public NoticeQueue {
 public:
  /// For create().
  explicit EventQueue(SharedKey /*key*/) {}
  /// Start the ring. Control path. @param bus outlives the queue. @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<EventQueue>* out);

  /// Fetch events in their order and give their room back, with one BAR write if there were any.
  /// The type may be one that regs::EventType does not have (0 for one above 255). Calls the poll
  /// hook once, and looks again, when there is nothing. @return how many, 0 to `n`.
  uint16_t burst(CardEvent* out, uint16_t n);
};

}  // namespace rio::pmd
