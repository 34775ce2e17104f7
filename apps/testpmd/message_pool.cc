#include "apps/testpmd/message_pool.hpp"

#include <algorithm>

namespace rio::testpmd {
namespace {

/// Distance between buffers: odd in units of the alignment, at least a cache line more than 4 KiB.
uint32_t stride_bytes(uint32_t align_bytes) {
  return kMessageBytes + std::max<uint32_t>(align_bytes, 64) % kMessageBytes;
}

}  // namespace

int MessagePool::create(pmd::Bus& bus, uint32_t buffers, uint32_t align_bytes,
                        std::unique_ptr<MessagePool>* out, std::string* error) {
  const uint64_t stride = stride_bytes(align_bytes);
  pmd::DmaMemory memory;
  const int rc = bus.dma_alloc(stride * buffers, kMessageBytes, &memory);
  if (rc != 0) {
    *error = "no memory for " + std::to_string(buffers) + " message buffers (" +
             std::to_string(stride * buffers / 1024 / 1024 + 1) +
             " MiB); reserve hugepages (echo 256 >/proc/sys/vm/nr_hugepages) or give EAL more "
             "memory (-m 512)";
    return rc;
  }
  std::unique_ptr<MessagePool> pool(new MessagePool(bus, memory));
  pool->va_minus_iova_ = reinterpret_cast<uint64_t>(memory.va) - memory.iova;
  pool->free_.reserve(buffers);
  for (uint32_t i = buffers; i-- > 0;) {
    pool->free_.push_back(memory.iova + i * stride);
  }
  *out = std::move(pool);
  return 0;
}

MessagePool::~MessagePool() { bus_.dma_free(memory_); }

}  // namespace rio::testpmd
