/// @file
/// Doorbell receive queue.
#pragma once

#include <cstdint>

#include "pmd/dev/notice_queue.hpp"

namespace rio::pmd {

/// Received type 10 doorbells. The ring has completions only; its tail gives the card credits, and
/// without credits the card answers RETRY, so none is lost. All functions belong to one thread.
/// regs: doorbell_cpl; RIO Part 2 §2.2.1. (TxQueue sends doorbells.)
class alignas(64) DoorbellQueue : public NoticeQueue {
 public:
  /// For create().
  explicit DoorbellQueue(SharedKey /*key*/) {}
  /// Start the ring. Control path. @param bus outlives the queue. @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<DoorbellQueue>* out);

  /// Fetch doorbells in the order of arrival and give their room back, with one BAR write if there
  /// were any. Calls the poll hook once, and looks again, when there is nothing.
  /// @return how many, 0 to `n`.
  uint16_t burst(DoorbellEvent* out, uint16_t n);
};

}  // namespace rio::pmd
