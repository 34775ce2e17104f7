#include "pmd/bus/eal/eal_memory.hpp"

#include <rte_eal.h>
#include <rte_memory.h>

#include <cerrno>

#include "base/log.hpp"

namespace rio::pmd {

int EalMemory::create(std::string tag, std::unique_ptr<EalMemory>* out) {
  std::unique_ptr<EalMemory> memory(new EalMemory(std::move(tag)));
  if (const int rc = MemsegView::create(&memory->view_); rc != 0) {
    return rc;
  }
  *out = std::move(memory);
  return 0;
}

int EalMemory::map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  if (va == nullptr || len_bytes == 0) {
    return -EINVAL;
  }
  if (mapped_.contains(va)) {
    return -EEXIST;
  }
  if (view_->runs(va, len_bytes, runs) == 0) {
    mapped_[va] = {len_bytes, false};
    return 0;
  }
  const rte_iova_t known =
      rte_mem_virt2memseg(va, nullptr) != nullptr ? rte_mem_virt2iova(va) : RTE_BAD_IOVA;
  const uint64_t iova = known != RTE_BAD_IOVA ? known : reinterpret_cast<uint64_t>(va);
  if (const int rc = map_at(va, iova, len_bytes); rc != 0) {
    return rc;
  }
  *runs = {{va, iova, len_bytes}};
  return 0;
}

int EalMemory::map_at(void* va, uint64_t iova, size_t len_bytes) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    base::log_error(
        "%p belongs to this process alone, but the emulated card is in the primary: use memory "
        "of EAL (rte_malloc, mempool)",
        va);
    return -ENOTSUP;
  }
  if (const int rc = view_->add(va, iova, len_bytes); rc != 0) {
    return rc;
  }
  mapped_[va] = {len_bytes, true};
  return 0;
}

int EalMemory::unmap(void* va, size_t len_bytes) {
  const auto it = mapped_.find(va);
  if (it == mapped_.end() || it->second.first != len_bytes) {
    return -ENOENT;
  }
  const bool told = it->second.second;
  mapped_.erase(it);
  return told ? view_->remove(va, len_bytes) : 0;
}

}  // namespace rio::pmd
