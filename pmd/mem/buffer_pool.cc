#include "pmd/mem/buffer_pool.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/log.hpp"

namespace rio::pmd::mem {
namespace {

constexpr uint32_t kAlignMin = 256;  // [S0]: translated memory, last segment of 256 bytes
constexpr uint32_t kAlignMax = 4096;

}  // namespace

int BufferPool::create(Bus& bus, uint32_t count, uint32_t align_bytes,
                       std::unique_ptr<BufferPool>* out) {
  if (count == 0 || count > kCountMax || !std::has_single_bit(align_bytes) ||
      align_bytes > kAlignMax) {
    base::log_error(
        "%s: %u message buffers aligned to %u asked for: take 1 to %u, aligned to a power of two "
        "up to %u",
        bus.name().c_str(), count, align_bytes, kCountMax, kAlignMax);
    return -EINVAL;
  }
  const uint32_t align = std::max(align_bytes, kAlignMin);
  const uint32_t stride_bytes = kBufferBytes + align;
  DmaMemory memory;
  // Page alignment costs nothing and puts the first buffer's head on a page.
  if (const int rc = bus.dma_alloc(size_t{count} * stride_bytes, kAlignMax, &memory); rc != 0) {
    return rc;
  }
  out->reset(new BufferPool(bus, memory, count, stride_bytes));
  return 0;
}

BufferPool::BufferPool(Bus& bus, const DmaMemory& memory, uint32_t count, uint32_t stride_bytes)
    : free_(std::make_unique<uint32_t[]>(count)),
      base_va_(static_cast<uint8_t*>(memory.va)),
      base_iova_(memory.iova),
      free_count_(count),
      count_(count),
      stride_bytes_(stride_bytes),
      memory_(memory),
      bus_(bus) {
  for (uint32_t i = 0; i < count; ++i) {
    free_[i] = count - 1 - i;  // the first index handed out is 0
  }
}

BufferPool::~BufferPool() {
  bus_.dma_free(memory_);
}

}  // namespace rio::pmd::mem
