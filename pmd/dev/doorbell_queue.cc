#include "pmd/dev/doorbell_queue.hpp"

#include <cerrno>
#include <new>

namespace rio::pmd {

int DoorbellQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                          std::unique_ptr<DoorbellQueue>* out) {
  std::unique_ptr<DoorbellQueue> queue(new (std::nothrow) DoorbellQueue);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error = queue->start(bus, caps, config, {0, sizeof(regs::DoorbellCpl)});
      error != 0) {
    return error;
  }
  *out = std::move(queue);
  return 0;
}

uint32_t DoorbellQueue::take(DoorbellEvent* out, uint32_t n) {
  uint32_t k = 0;
  for (; k < n; ++k) {
    const auto* const cpl = cursor_.at<regs::DoorbellCpl>();
    // acquire: the rest of the completion is visible after it; pairs with the card's write of the
    // last word.
    const uint32_t status = dma_load_last_word(&cpl->status) ^ cursor_.flip();
    if ((status & kPhaseBit) != 0) {
      break;
    }
    out[k] = {cpl->source, cpl->dest_id, cpl->time,
              static_cast<uint16_t>(regs::doorbell_cpl::Status::info.get(status))};
    ++cursor_.consumed;
  }
  return k;
}

uint16_t DoorbellQueue::burst(DoorbellEvent* out, uint16_t n) {
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
