#include "pmd/dev/shared_rx_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "pmd/dev/reap.hpp"

namespace rio::pmd {
namespace {

using Place = regs::shared_cpl::Place;

// Whole words at once.
static_assert(offsetof(RxMessage, source) == 8 && offsetof(RxMessage, dest_id) == 12 &&
              offsetof(RxMessage, arrival) == 16 && offsetof(RxMessage, time_ticks) == 20 &&
              offsetof(regs::SharedCpl, source) == 0 && offsetof(regs::SharedCpl, dest_id) == 4 &&
              offsetof(regs::SharedCpl, arrival) == 16 && offsetof(regs::SharedCpl, time) == 20);
constexpr size_t kPairBytes = 8;

// For reap_burst(); every buffer holds kMessageBytesMax.
struct SharedReap {
  using Cpl = regs::SharedCpl;
  using Done = RxMessage;
  static uint32_t size(const uint32_t* /*sizes*/, size_t /*slot*/) {
    return regs::kMessageBytesMax;
  }
  static uint32_t bytes(const Cpl& cpl, uint32_t /*size*/) { return cpl.length; }
  static void fill(const Cpl& cpl, uint32_t status, uint64_t cookie, Done* out) {
    auto* const to = reinterpret_cast<uint8_t*>(out);
    const auto* const from = reinterpret_cast<const uint8_t*>(&cpl);
    out->cookie = cookie;
    std::memcpy(to + offsetof(Done, source), from + offsetof(Cpl, source), kPairBytes);
    std::memcpy(to + offsetof(Done, arrival), from + offsetof(Cpl, arrival), kPairBytes);
    out->length_bytes = cpl.length;
    out->mbox = static_cast<uint8_t>(Place::mbox.get(cpl.place));
    out->letter = static_cast<uint8_t>(Place::letter.get(cpl.place));
    out->segments = cpl.segments;
    out->status = static_cast<Status>(regs::shared_cpl::Status::code.get(status));
  }
  static void spoil(Done* out) {
    out->status = Status::kFormat;
    out->length_bytes = 0;
  }
};

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

uint16_t SharedRxQueue::burst(RxMessage* out, uint16_t n) {
  return reap_burst<SharedReap>({cursor_, window_, stats_, nullptr}, hook_, out, n);
}

uint16_t SharedRxQueue::free_count() const {
  return static_cast<uint16_t>(std::min(window_.room(), 0xFFFFu));
}

uint16_t SharedRxQueue::outstanding() const {
  return static_cast<uint16_t>(std::min(window_.outstanding(), 0xFFFFu));
}

}  // namespace rio::pmd
