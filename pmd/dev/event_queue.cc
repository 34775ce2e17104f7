#include "pmd/dev/event_queue.hpp"

#include <cerrno>
#include <new>

namespace rio::pmd {

int EventQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                       std::unique_ptr<EventQueue>* out) {
  std::unique_ptr<EventQueue> queue(new (std::nothrow) EventQueue);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error = queue->start(bus, caps, config, {0, sizeof(regs::EventCpl)}); error != 0) {
    return error;
  }
  *out = std::move(queue);
  return 0;
}

uint32_t EventQueue::take(CardEvent* out, uint32_t n) {
  uint32_t k = 0;
  for (; k < n; ++k) {
    const auto* const cpl = cursor_.at<regs::EventCpl>();
    // acquire: the rest of the completion is visible after it; pairs with the card's write of the
    // last word.
    const uint32_t status = dma_load_last_word(&cpl->status) ^ cursor_.flip();
    if ((status & kPhaseBit) != 0) {
      break;
    }
    const auto type = cpl->type > 0xFFu ? regs::EventType{} : regs::EventType(cpl->type);
    out[k] = {type, cpl->source, cpl->info, {cpl->data0, cpl->data1, cpl->data2, cpl->data3}};
    ++cursor_.consumed;
  }
  return k;
}

uint16_t EventQueue::burst(CardEvent* out, uint16_t n) {
  uint32_t given = take(out, n);
  if (given == 0 && n != 0) [[unlikely]] {
    hook_();
    given = take(out, n);
  }
  if (given != 0) {
    stats_.messages.add(given);
    // Doorbell: credits, after the completions were read (release in write32); pairs with the
    // card, which writes completions only below the tail that it has seen.
    bar_.write32(tail_offset_, cursor_.consumed + cursor_.mask + 1);
  }
  return static_cast<uint16_t>(given);
}

}  // namespace rio::pmd
