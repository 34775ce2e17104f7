/// @file
/// The common part of doorbell and event queues.
#pragma once

#include <cstdint>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// A queue whose ring has completions only, and whose tail gives the card credits. All functions
/// belong to one thread.
class NoticeQueue : public QueueBase {
 protected:
  NoticeQueue() = default;

  /// Fetch in the order of arrival and give the room back, with one BAR write if there was
  /// anything. Calls the poll hook once, and looks again, when there is nothing.
  /// @param made makes what the user gets of a completion and its last word, the phase bit zero.
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
    uint32_t k = 0;
    for (; k < n; ++k) {
      const auto* const cpl = cursor_.template at<Cpl>();
      // acquire: the rest of the completion is visible after it; pairs with the card's write of
      // the last word.
      const uint32_t status = dma_load_last_word(&cpl->status) ^ cursor_.flip();
      if ((status & kPhaseBit) != 0) {
        break;
      }
      out[k] = made(*cpl, status);
      ++cursor_.consumed;
    }
    return k;
  }
};

}  // namespace rio::pmd
