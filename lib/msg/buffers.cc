#include "lib/msg/buffers.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/log.hpp"

namespace rio::msg {

int alloc_area(Endpoint& endpoint, uint32_t count, pmd::DmaMemory* out) {
  const pmd::Caps& caps = endpoint.caps();
  const uint32_t align = std::max({caps.shared_addr_align, caps.tx_addr_align, 64u});
  if (kStrideBytes % align != 0) {
    base::log_error("%s wants buffers at multiples of %u; at most %u is supported",
                    endpoint.name().c_str(), align, regs::kSegmentBytesMax);
    return -ENOTSUP;
  }
  return endpoint.alloc(uint64_t{count} * kStrideBytes, align, out);
}

int Buffers::start(uint32_t count) {
  pmd::DmaMemory memory;
  if (const int rc = alloc_area(endpoint_, count, &memory); rc != 0) {
    return rc;
  }
  spare_.reset(new (std::nothrow) uint8_t*[count]);
  if (spare_ == nullptr) {
    return -ENOMEM;
  }
  auto* const base = static_cast<uint8_t*>(memory.va);
  iova_minus_va_ = memory.iova - reinterpret_cast<uintptr_t>(base);
  for (uint32_t i = 0; i < count; ++i) {
    give_back(base + uint64_t{i} * kStrideBytes);
  }
  refill();
  return 0;
}

void Buffers::refill() {
  // Post the buffers returned last, which are still in the cache. The ring may be fuller than
  // posted_ says: messages that were complete before an older one keep their entries.
  while (posted_ + kBurst <= kPosted && spare_count_ >= kBurst && ring_.free_count() >= kBurst) {
    const uint32_t taken =
        ring_.post_each(kBurst, [&, first = spare_.get() + spare_count_ - kBurst](size_t i) {
          const auto va = reinterpret_cast<uintptr_t>(first[i]);
          return pmd::RxBuffer{va + iova_minus_va_, va};
        });
    posted_ += taken;
    spare_count_ -= taken;
    if (taken != kBurst) [[unlikely]] {  // the ring takes all or none, so the card is gone
      return;
    }
  }
}

}  // namespace rio::msg
