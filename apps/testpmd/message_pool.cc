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
  pool->va_minus_iova_ = reinterpret_cast<uint64_t>(pool->memory_->va(0)) - pool->memory_->iova(0);
  *out = std::move(pool);
  return 0;
}

uint64_t MessagePool::take() {
  uint32_t index = 0;
  return memory_->get(&index, 1) == 1 ? memory_->iova(index) : 0;
}

void MessagePool::give(uint64_t iova) {
  const auto index = static_cast<uint32_t>((iova - memory_->iova(0)) / memory_->stride_bytes());
  (void)memory_->put(&index, 1);
}

}  // namespace rio::testpmd
