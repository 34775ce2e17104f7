/// @file
/// Queues without submissions: received doorbells, and events of the card.
#pragma once

#include <cstdint>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Base of both. A queue whose ring has completions only, and whose tail gives the card credits.
/// All functions belong to one thread.
class NoticeQueue : public QueueBase {
 protected:
  NoticeQueue() = default;

  /// Fetch in the order of arrival and give the room back, with one BAR write if there was
  /// anything. Calls the poll hook once, and looks again, when there is nothing.
  /// @param made makes what the user gets of a completion.
  /// @return how many, 0 to `n`.
  template <typename Cpl, typename Notice, typename Made>
  uint16_t fetch(Notice* out, uint16_t n, const Made& made) {
    uint32_t given = take<Cpl>(out, n, made);
    if (given == 0 && n != 0) [[unlikely]] {
      hook_();
      given = take<Cpl>(out, n, made);
    }
    if (given != 0) {
      stats_.messages.add(given);
      // Doorbell: credits, after the completions were read (release in write32); pairs with the
      // card, which writes completions only below the tail that it has seen.
      bar_.write32(tail_offset_, cursor_.consumed + cursor_.mask + 1);
    }
    return static_cast<uint16_t>(given);
  }

 private:
  template <typename Cpl, typename Notice, typename Made>
  uint32_t take(Notice* out, uint32_t n, const Made& made) {
    CompletionCursor cursor = cursor_;
    uint32_t k = 0;
    for (; k < n && cursor.template ready<Cpl>(); ++k) {
      out[k] = made(load_whole<0>(cursor.template at<Cpl>(), [](const Cpl&) { return true; }));
      cursor.template consume<Cpl>();
    }
    cursor_.consumed = cursor.consumed;
    return k;
  }
};

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

/// Events of a queue pair. The ring has completions only; the card counts events that find no room
/// and reports them (regs::EventType::kOverflow). All functions belong to one thread. regs:
/// event_cpl.
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
