#include "pmd/net/rx_buffers.hpp"

#include <cerrno>
#include <cstdio>
#include <vector>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {
namespace {

constexpr unsigned kCache = 64;
constexpr uint32_t kSlack = 64;  // bytes behind a message: readers copy more than they need

/// Mempools without an owner whose frames are still with users, under control_lock(). Never
/// destroyed, since EAL closes ports after static objects are gone.
std::vector<rte_mempool*>& left_behind() {
  static auto* pools = new std::vector<rte_mempool*>;
  return *pools;
}

void free_those_that_are_whole() {
  std::erase_if(left_behind(), [](rte_mempool* pool) {
    const bool whole = rte_mempool_full(pool) != 0;
    if (whole) {
      rte_mempool_free(pool);
    }
    return whole;
  });
}

}  // namespace

int RxBuffers::create(uint32_t count, uint16_t priv_bytes, uint32_t align_bytes, int numa_node) {
  free_those_that_are_whole();
  static uint32_t number = 0;
  char name[RTE_MEMPOOL_NAMESIZE];
  std::snprintf(name, sizeof(name), "net_rio_rx_%u", number++);
  const uint32_t room = RTE_PKTMBUF_HEADROOM + align_bytes + regs::kMessageBytesMax + kSlack;
  pool_ = rte_pktmbuf_pool_create(name, count, kCache, priv_bytes, static_cast<uint16_t>(room),
                                  numa_node);
  if (pool_ == nullptr) {
    return -ENOMEM;
  }
  align_bytes_ = align_bytes;
  return 0;
}

bool RxBuffers::refill() {
  if (rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(spares_.data()), kSpares) == 0) {
    spare_count_ = kSpares;
    return true;
  }
  spares_[0] = rte_mbuf_raw_alloc(pool_);  // takes the last ones singly
  spare_count_ = spares_[0] != nullptr ? 1 : 0;
  return spare_count_ != 0;
}

void RxBuffers::put_back_spares() {
  while (spare_count_ != 0) {
    rte_mbuf_raw_free(spares_[--spare_count_]);
  }
}

RxBuffers::~RxBuffers() {
  if (pool_ != nullptr) {
    put_back_spares();
    left_behind().push_back(pool_);
    free_those_that_are_whole();
  }
}

}  // namespace rio::pmd
