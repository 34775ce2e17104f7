#include "pmd/dev/shared_rx_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace rio::pmd {
namespace {

using Place = regs::shared_cpl::Place;

// Whole words at once.
static_assert(offsetof(RxMessage, source) == 8 && offsetof(RxMessage, dest_id) == 12 &&
              offsetof(RxMessage, arrival) == 16 && offsetof(RxMessage, time_ticks) == 20 &&
              offsetof(regs::SharedCpl, source) == 0 && offsetof(regs::SharedCpl, dest_id) == 4 &&
              offsetof(regs::SharedCpl, arrival) == 16 && offsetof(regs::SharedCpl, time) == 20);
constexpr size_t kPairBytes = 8;

[[gnu::always_inline]] inline void fill_message(const regs::SharedCpl& cpl, uint64_t cookie,
                                                Status status, RxMessage* out) {
  auto* const to = reinterpret_cast<uint8_t*>(out);
  const auto* const from = reinterpret_cast<const uint8_t*>(&cpl);
  out->cookie = cookie;
  std::memcpy(to + offsetof(RxMessage, source), from + offsetof(regs::SharedCpl, source),
              kPairBytes);
  std::memcpy(to + offsetof(RxMessage, arrival), from + offsetof(regs::SharedCpl, arrival),
              kPairBytes);
  out->length_bytes = cpl.length;
  out->mbox = static_cast<uint8_t>(Place::mbox.get(cpl.place));
  out->letter = static_cast<uint8_t>(Place::letter.get(cpl.place));
  out->segments = cpl.segments;
  out->status = status;
}

// One completion of the plain case: it is there, it is the one of entry `expected`, with kOk, and
// its length is possible. Writes nothing but `out` and `bytes`.
[[nodiscard, gnu::always_inline]] inline bool take_message(const regs::SharedCpl& cpl,
                                                           uint32_t flip, uint32_t expected,
                                                           uint64_t cookie, RxMessage* out,
                                                           uint64_t* bytes) {
  // acquire: the rest of the completion and the message are visible after it; pairs with the card's
  // write of the last word.
  const uint32_t status = dma_load_last_word(&cpl.status) ^ flip;
  if ((status & (kPhaseBit | kCodeMask)) != 0 || cpl.index != expected ||
      cpl.length > regs::kMessageBytesMax) {
    return false;
  }
  fill_message(cpl, cookie, Status::kOk, out);
  *bytes += cpl.length;
  return true;
}

// One buffer that is aligned.
[[nodiscard, gnu::always_inline]] inline bool fill(const RxBuffer& buffer, uint64_t misaligned,
                                                   regs::SharedDesc* entry, uint64_t* cookie) {
  if ((buffer.iova & misaligned) != 0) [[unlikely]] {
    return false;
  }
  entry->addr = buffer.iova;
  *cookie = buffer.cookie;
  return true;
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

uint32_t SharedRxQueue::post_run(const RxBuffer* buffers, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::SharedDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint64_t misaligned = addr_misaligned_;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    if (!fill(buffers[k], misaligned, &entries[k], &cookies[k]) ||
        !fill(buffers[k + 1], misaligned, &entries[k + 1], &cookies[k + 1]) ||
        !fill(buffers[k + 2], misaligned, &entries[k + 2], &cookies[k + 2]) ||
        !fill(buffers[k + 3], misaligned, &entries[k + 3], &cookies[k + 3])) {
      break;  // one by one, again
    }
  }
  while (k < n && fill(buffers[k], misaligned, &entries[k], &cookies[k])) {
    ++k;
  }
  if (k < n) [[unlikely]] {
    last_reject_ = Reject::kAlignment;
    ++stats_.rejected;
  }
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
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
uint32_t SharedRxQueue::take_plain(RxMessage* out, size_t n) {
  const auto* const cpl = cursor_.at<regs::SharedCpl>();
  const uint32_t flip = cursor_.flip();
  const uint64_t* const cookies = window_.cookies() + (window_.oldest() & window_.mask());
  uint32_t next = window_.oldest();
  uint64_t bytes = 0;
  size_t k = 0;
  for (; k + 4 <= n; k += 4, next += 4) {
    uint64_t four = bytes;
    if (!take_message(cpl[k], flip, next, cookies[k], &out[k], &four) ||
        !take_message(cpl[k + 1], flip, next + 1, cookies[k + 1], &out[k + 1], &four) ||
        !take_message(cpl[k + 2], flip, next + 2, cookies[k + 2], &out[k + 2], &four) ||
        !take_message(cpl[k + 3], flip, next + 3, cookies[k + 3], &out[k + 3], &four)) {
      break;  // one by one, again
    }
    bytes = four;
  }
  while (k < n && take_message(cpl[k], flip, next, cookies[k], &out[k], &bytes)) {
    ++k;
    ++next;
  }
  stats_.bytes += bytes;
  stats_.messages += k;
  cursor_.consumed += static_cast<uint32_t>(k);
  window_.complete_in_order(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
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
  fill_message(*cpl, window_.cookies()[index & window_.mask()],
               static_cast<Status>(regs::shared_cpl::Status::code.get(status)), out);
  if (out->length_bytes >
      regs::kMessageBytesMax) {  // the buffer is ours again, its content nonsense
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
  while (looked < n && window_.used() != 0) {
    const uint32_t run = std::min({n - looked, cursor_.to_wrap(), window_.plain_in_a_row()});
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
