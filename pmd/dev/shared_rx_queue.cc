#include "pmd/dev/shared_rx_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace rio::pmd {
namespace {

using Place = regs::shared_cpl::Place;

void fill_message(const regs::SharedCpl& cpl, uint64_t cookie, RxMessage* out) {
  out->cookie = cookie;
  std::memcpy(&out->source, &cpl.source, sizeof cpl.source);
  out->dest_id = cpl.dest_id;
  out->arrival = cpl.arrival;
  out->time_ticks = cpl.time;
  out->length_bytes = cpl.length;
  out->mbox = static_cast<uint8_t>(Place::mbox.get(cpl.place));
  out->letter = static_cast<uint8_t>(Place::letter.get(cpl.place));
  out->segments = cpl.segments;
}

}  // namespace

int SharedRxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                          std::unique_ptr<SharedRxQueue>* out) {
  std::unique_ptr<SharedRxQueue> queue(new (std::nothrow) SharedRxQueue);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error =
          queue->start(bus, caps, config, {sizeof(regs::SharedDesc), sizeof(regs::SharedCpl)});
      error != 0) {
    return error;
  }
  if (queue->window_.create(config.log2, config.start_index) != 0) {
    return -ENOMEM;
  }
  queue->entries_ = static_cast<regs::SharedDesc*>(queue->ring_.entries());
  queue->addr_misaligned_ = caps.shared_addr_align - 1;
  *out = std::move(queue);
  return 0;
}

uint32_t SharedRxQueue::post_run(const RxBuffer* buffers, uint32_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::SharedDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint64_t misaligned = addr_misaligned_;
  uint32_t k = 0;
  for (; k < n; ++k) {
    if ((buffers[k].iova & misaligned) != 0) [[unlikely]] {
      last_reject_ = Reject::kAlignment;
      ++stats_.rejected;
      break;
    }
    entries[k].addr = buffers[k].iova;
    cookies[k] = buffers[k].cookie;
  }
  window_.post(k);
  return k;
}

uint16_t SharedRxQueue::post(const RxBuffer* buffers, uint16_t n) {
  last_reject_ = Reject::kNone;
  uint32_t done = post_run(buffers, std::min<uint32_t>(n, window_.room_in_a_row()));
  if (done < n && last_reject_ == Reject::kNone) {  // the slots wrapped, or the ring is full
    done += post_run(buffers + done, std::min(n - done, window_.room_in_a_row()));
  }
  if (done != 0) {
    // Doorbell: entries visible before it (barrier in write32); pairs with the card's fetch, which
    // reads entries only below the tail that it has seen.
    bar_.write32(tail_offset_, window_.head());
  }
  return static_cast<uint16_t>(done);
}

// The plain case: messages that are there, in the order of their buffers, with kOk. Stops at the
// first that is otherwise.
uint32_t SharedRxQueue::take_plain(RxMessage* out, uint32_t n) {
  const auto* const cpl = cursor_.at<regs::SharedCpl>();
  const uint32_t flip = cursor_.flip();
  const uint32_t first = window_.oldest();
  const uint64_t* const cookies = window_.cookies() + (first & window_.mask());
  uint64_t bytes = 0;
  uint32_t k = 0;
  for (; k < n; ++k) {
    // acquire: the rest of the completion and the message are visible after it; pairs with the
    // card's write of the last word.
    const uint32_t status = dma_load_last_word(&cpl[k].status) ^ flip;
    if (((status & (kPhaseBit | kCodeMask)) | (cpl[k].index ^ (first + k))) != 0 ||
        cpl[k].length > regs::kMessageBytesMax) {
      break;
    }
    fill_message(cpl[k], cookies[k], &out[k]);
    out[k].status = Status::kOk;
    bytes += cpl[k].length;
  }
  stats_.bytes += bytes;
  stats_.messages += k;
  cursor_.consumed += k;
  window_.complete_in_order(k);
  return k;
}

// Any case, one completion. @return 1 given, 0 counted as bad and dropped, -1 not there.
int SharedRxQueue::take_one(RxMessage* out) {
  const auto* const cpl = cursor_.at<regs::SharedCpl>();
  // acquire: as in take_plain; pairs with the card's write of the last word.
  const uint32_t status = dma_load_last_word(&cpl->status) ^ cursor_.flip();
  if ((status & kPhaseBit) != 0) {
    return -1;
  }
  ++cursor_.consumed;
  const uint32_t index = cpl->index;
  if (!window_.complete(index)) {
    ++stats_.bad_completions;
    return 0;
  }
  fill_message(*cpl, window_.cookies()[index & window_.mask()], out);
  out->status = static_cast<Status>(regs::shared_cpl::Status::code.get(status));
  if (out->length_bytes > regs::kMessageBytesMax) {  // the buffer is ours again, its content nonsense
    ++stats_.bad_completions;
    out->length_bytes = 0;
    out->status = Status::kFormat;
  }
  if (out->status == Status::kOk) {
    ++stats_.messages;
    stats_.bytes += out->length_bytes;
  } else {
    ++stats_.failed;
  }
  return 1;
}

uint32_t SharedRxQueue::take(RxMessage* out, uint32_t n) {
  uint32_t looked = 0;
  uint32_t given = 0;
  while (looked < n) {
    const uint32_t run =
        std::min({n - looked, cursor_.to_wrap(), window_.plain_in_a_row()});
    const uint32_t plain = take_plain(out + given, run);
    given += plain;
    looked += plain;
    if (plain == run && run != 0) {
      continue;
    }
    const int one = take_one(out + given);
    if (one < 0) {
      break;
    }
    ++looked;
    given += static_cast<uint32_t>(one);
  }
  return given;
}

uint16_t SharedRxQueue::burst(RxMessage* out, uint16_t n) {
  uint32_t given = take(out, n);
  if (given == 0 && n != 0) [[unlikely]] {
    hook_();
    given = take(out, n);
  }
  return static_cast<uint16_t>(given);
}

uint16_t SharedRxQueue::free_count() const {
  return static_cast<uint16_t>(std::min(window_.room(), 0xFFFFu));
}

uint16_t SharedRxQueue::outstanding() const {
  return static_cast<uint16_t>(std::min(window_.outstanding(), 0xFFFFu));
}

}  // namespace rio::pmd
