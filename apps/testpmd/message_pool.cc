#include "apps/testpmd/message_pool.hpp"

namespace rio::testpmd {

int MessagePool::create(pmd::Bus& bus, uint32_t buffers, uint32_t align_bytes,
                        std::unique_ptr<MessagePool>* out, std::string* error) {
  std::unique_ptr<MessagePool> pool(new MessagePool());
  const int rc = pmd::mem::BufferPool::create(bus, buffers, align_bytes, &pool->memory_);
  if (rc != 0) {
    *error = "no memory for " + std::to_string(buffers) +
             " message buffers of 4 KiB; reserve "
             "hugepages (echo 256 >/proc/sys/vm/nr_hugepages) or give EAL more memory (-m 512)";
    return rc;
  }
  const pmd::mem::BufferPool& memory = *pool->memory_;
  pool->va_minus_iova_ = reinterpret_cast<uint64_t>(memory.va(0)) - memory.iova(0);
  pool->free_.reserve(buffers);
  for (uint32_t i = buffers; i-- > 0;) {
    pool->free_.push_back(memory.iova(i));
  }
  *out = std::move(pool);
  return 0;
}

uint64_t MessagePool::take() {
  if (free_.empty()) {
    return 0;
  }
  const uint64_t iova = free_.back();
  free_.pop_back();
  return iova;
}

}  // namespace rio::testpmd
