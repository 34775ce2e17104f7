#include "lib/msg/buffers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/log.hpp"

namespace rio::msg {

int alloc_area(Endpoint& endpoint, uint32_t count, pmd::DmaMemory* out) {
  const pmd::Caps& caps = endpoint.caps();
  const uint32_t align = std::max({caps.shared_addr_align, caps.tx_addr_align, 64u});
  if (kStrideBytes % align != 0) {
    base::log_error(
        "%s wants buffers at multiples of %u bytes; a port has them at multiples of %u at most, "
        "for "
        "all its cards: leave the card out",
        endpoint.name().c_str(), align, regs::kSegmentBytesMax);
    return -ENOTSUP;
  }
  return endpoint.alloc(uint64_t{count} * kStrideBytes, align, out);
}

int Buffers::create(Endpoint& endpoint, uint32_t count) {
  if (const int rc = alloc_area(endpoint, count, &memory_); rc != 0) {
    return rc;
  }
  spare_.reset(new (std::nothrow) uint8_t*[count]);
  if (spare_ == nullptr) {
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < count; ++i) {
    give_back(static_cast<uint8_t*>(memory_.va) + uint64_t{i} * kStrideBytes);
  }
  return 0;
}

int BufferRing::start() {
  const pmd::DmaMemory& memory = buffers_.memory();
  uint64_t iova = 0;
  if (endpoint_.iova(memory.va, memory.len_bytes, &iova) != 0) {  // another card's memory
    int rc = endpoint_.register_memory(memory.va, memory.len_bytes, nullptr);
    rc = rc != 0 ? rc : endpoint_.iova(memory.va, memory.len_bytes, &iova);
    if (rc != 0) {
      base::log_error("%s cannot use the receive buffers of the port's first card: %s",
                      endpoint_.name().c_str(), std::strerror(-rc));
      return rc;
    }
  }
  iova_minus_va_ = iova - reinterpret_cast<uintptr_t>(memory.va);
  refill();
  return 0;
}

void BufferRing::refill() {
  // The ring may be fuller than posted_ says: messages that were complete before an older one keep
  // their entries.
  while (posted_ + kBurst <= kPosted && buffers_.spare_count() >= kBurst &&
         ring_.free_count() >= kBurst) {
    const uint32_t taken = ring_.post_each(kBurst, [&, first = buffers_.last(kBurst)](size_t i) {
      const auto va = reinterpret_cast<uintptr_t>(first[i]);
      return pmd::RxBuffer{va + iova_minus_va_, va};
    });
    posted_ += taken;
    buffers_.take(taken);
    if (taken != kBurst) [[unlikely]] {  // the ring takes all or none, so the card is gone
      return;
    }
  }
}

}  // namespace rio::msg
