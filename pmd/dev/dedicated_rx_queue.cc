#include "pmd/dev/dedicated_rx_queue.hpp"

#include <cerrno>

#include "base/log.hpp"
#include "pmd/dev/reap.hpp"

namespace rio::pmd {

namespace {

// Fills one entry of a size that was checked before; every other size takes the slow path.
[[nodiscard, gnu::always_inline]] inline bool fill(const DedicatedEntry& entry,
                                                   uint64_t addr_misaligned, uint32_t size_bytes,
                                                   regs::DedicatedDesc* desc, uint64_t* cookie,
                                                   uint32_t* size) {
  const uint64_t iova = entry.iova;
  if ((iova & addr_misaligned) != 0 || entry.size_bytes != size_bytes) [[unlikely]] {
    return false;
  }
  const uint64_t whole_cookie = entry.cookie;
  desc->addr = iova;
  desc->size = size_bytes;
  desc->cookie = static_cast<uint32_t>(whole_cookie);
  *cookie = whole_cookie;
  *size = size_bytes;
  return true;
}

}  // namespace

int DedicatedRxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                             SharedPtr<DedicatedRxQueue>* out) {
  constexpr auto kFirst = static_cast<uint32_t>(regs::Ring::kDedicated0);
  if (config.ring < kFirst || config.ring >= kFirst + regs::kDedicatedQueues) {
    base::log_error("%s: ring %u is not a dedicated queue; those are rings %u to %u",
                    bus.name().c_str(), config.ring, kFirst, kFirst + regs::kDedicatedQueues - 1);
    return -EINVAL;
  }
  return make_queue(bus, out, [&](DedicatedRxQueue& queue) {
    queue.addr_misaligned_ = caps.dedicated_addr_align - 1;
    queue.size_misaligned_ = caps.dedicated_size_align - 1;
    queue.size_bytes_ = caps.dedicated_size_align;  // a size that always fits
    return queue.start<regs::EntryCpl>(bus, caps, config, &queue.entries_);
  });
}

bool DedicatedRxQueue::fits(uint32_t size_bytes) const {
  return (size_bytes & size_misaligned_) == 0 && size_bytes - 1 < regs::kMessageBytesMax;
}

uint32_t DedicatedRxQueue::post_run(const DedicatedEntry* entries, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::DedicatedDesc* const descs = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  uint32_t* const sizes = window_.sizes() + slot;
  const uint64_t misaligned = addr_misaligned_;
  uint32_t size_bytes = size_bytes_;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    if (!fill(entries[k], misaligned, size_bytes, &descs[k], &cookies[k], &sizes[k]) ||
        !fill(entries[k + 1], misaligned, size_bytes, &descs[k + 1], &cookies[k + 1],
              &sizes[k + 1]) ||
        !fill(entries[k + 2], misaligned, size_bytes, &descs[k + 2], &cookies[k + 2],
              &sizes[k + 2]) ||
        !fill(entries[k + 3], misaligned, size_bytes, &descs[k + 3], &cookies[k + 3],
              &sizes[k + 3])) {
      break;  // the rest one by one
    }
  }
  for (; k < n; ++k) {
    if (!fits(entries[k].size_bytes)) {
      refuse(Reject::kLength);
      break;
    }
    size_bytes = entries[k].size_bytes;
    if (!fill(entries[k], misaligned, size_bytes, &descs[k], &cookies[k], &sizes[k])) {
      refuse(Reject::kAlignment);
      break;
    }
  }
  size_bytes_ = size_bytes;
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

uint16_t DedicatedRxQueue::post(const DedicatedEntry* entries, uint16_t n) {
  return post_runs(entries, n,
                   [this](const auto* first, size_t count) { return post_run(first, count); });
}

uint16_t DedicatedRxQueue::reap(EntryDone* out, uint16_t n) {
  return reap_burst(out, n);
}

}  // namespace rio::pmd
