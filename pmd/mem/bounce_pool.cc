#include "pmd/mem/bounce_pool.hpp"

#include <cerrno>

#include "base/log.hpp"

namespace rio::pmd::mem {

int BouncePool::create(Bus& bus, uint32_t count, std::unique_ptr<BouncePool>* out) {
  if (count == 0 || count > kCountMax) {
    base::log_error("%s: %u bounce buffers asked for: take 1 to %u", bus.name().c_str(), count,
                    kCountMax);
    return -EINVAL;
  }
  DmaMemory memory;
  if (const int rc = bus.dma_alloc(size_t{count} * kBufferBytes, kBufferBytes, &memory); rc != 0) {
    return rc;
  }
  out->reset(new BouncePool(bus, memory, count));
  return 0;
}

BouncePool::BouncePool(Bus& bus, const DmaMemory& memory, uint32_t count)
    : taken_(count, 0), memory_(memory), count_(count), bus_(bus) {
  free_.reserve(count);
  for (uint32_t index = count; index > 0; --index) {
    free_.push_back(index - 1);
  }
}

BouncePool::~BouncePool() {
  bus_.dma_free(memory_);
}

}  // namespace rio::pmd::mem
