#include "pmd/dev/dedicated_rx_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "pmd/bus/log.hpp"
#include "pmd/dev/entry_reap.hpp"

namespace rio::pmd {

// One entry that the card takes.
[[gnu::always_inline]] inline bool DedicatedRxQueue::fill(const DedicatedEntry& entry,
                                                          const Misaligned& wrong,
                                                          regs::DedicatedDesc* desc,
                                                          uint64_t* cookie, uint32_t* size_bytes) {
  if (((entry.iova & wrong.addr) | (entry.size_bytes & wrong.size)) != 0 ||
      entry.size_bytes - 1 >= regs::kMessageBytesMax) [[unlikely]] {
    return false;
  }
  desc->addr = entry.iova;
  desc->size = entry.size_bytes;
  desc->cookie = static_cast<uint32_t>(entry.cookie);
  *cookie = entry.cookie;
  *size_bytes = entry.size_bytes;
  return true;
}

int DedicatedRxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                             std::unique_ptr<DedicatedRxQueue>* out) {
  constexpr auto kFirst = static_cast<uint32_t>(regs::Ring::kDedicated0);
  if (config.ring < kFirst || config.ring >= kFirst + regs::kDedicatedQueues) {
    log_error("%s: ring %u is no dedicated queue; those are rings %u to %u", bus.name().c_str(),
              config.ring, kFirst, kFirst + regs::kDedicatedQueues - 1);
    return -EINVAL;
  }
  std::unique_ptr<DedicatedRxQueue> queue(new (std::nothrow) DedicatedRxQueue);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error =
          queue->start(bus, caps, config, {sizeof(regs::DedicatedDesc), sizeof(regs::EntryCpl)});
      error != 0) {
    return error;
  }
  if (queue->window_.create(config.log2, config.start_index) != 0) {
    return -ENOMEM;
  }
  queue->entries_ = static_cast<regs::DedicatedDesc*>(queue->ring_.entries());
  queue->misaligned_.addr = caps.dedicated_addr_align - 1;
  queue->misaligned_.size = caps.dedicated_size_align - 1;
  *out = std::move(queue);
  return 0;
}

uint32_t DedicatedRxQueue::post_run(const DedicatedEntry* entries, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::DedicatedDesc* const descs = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  uint32_t* const sizes = window_.sizes() + slot;
  const Misaligned wrong = misaligned_;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    if (!fill(entries[k], wrong, &descs[k], &cookies[k], &sizes[k]) ||
        !fill(entries[k + 1], wrong, &descs[k + 1], &cookies[k + 1], &sizes[k + 1]) ||
        !fill(entries[k + 2], wrong, &descs[k + 2], &cookies[k + 2], &sizes[k + 2]) ||
        !fill(entries[k + 3], wrong, &descs[k + 3], &cookies[k + 3], &sizes[k + 3])) {
      break;  // one by one, again
    }
  }
  while (k < n && fill(entries[k], wrong, &descs[k], &cookies[k], &sizes[k])) {
    ++k;
  }
  if (k < n) [[unlikely]] {
    refuse(entries[k]);
  }
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

void DedicatedRxQueue::refuse(const DedicatedEntry& entry) {
  last_reject_ = (entry.iova & misaligned_.addr) != 0 ? Reject::kAlignment : Reject::kLength;
  ++stats_.rejected;
}

uint16_t DedicatedRxQueue::post(const DedicatedEntry* entries, uint16_t n) {
  last_reject_ = Reject::kNone;
  uint32_t done = post_run(entries, std::min<uint32_t>(n, window_.room_in_a_row()));
  if (done < n && last_reject_ == Reject::kNone) {  // the slots wrapped, or the ring is full
    done += post_run(entries + done, std::min(n - done, window_.room_in_a_row()));
  }
  if (done != 0) {
    // Doorbell: entries visible before it (barrier in write32); pairs with the card's fetch, which
    // reads entries only below the tail that it has seen.
    bar_.write32(tail_offset_, window_.head());
  }
  return static_cast<uint16_t>(done);
}

uint16_t DedicatedRxQueue::reap(EntryDone* out, uint16_t n) {
  uint32_t given = reap_burst<EntryReap>(cursor_, window_, stats_, window_.sizes(), out, n);
  if (given == 0 && n != 0) [[unlikely]] {
    hook_();
    given = reap_burst<EntryReap>(cursor_, window_, stats_, window_.sizes(), out, n);
  }
  return static_cast<uint16_t>(given);
}

uint16_t DedicatedRxQueue::free_count() const {
  return static_cast<uint16_t>(std::min(window_.room(), 0xFFFFu));
}

uint16_t DedicatedRxQueue::outstanding() const {
  return static_cast<uint16_t>(std::min(window_.outstanding(), 0xFFFFu));
}

}  // namespace rio::pmd
