#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <map>
#include <mutex>

#include "fpga/model/dma_table.hpp"
#include "pmd/bus/emu/emu_memory.hpp"

namespace rio::pmd {
namespace {

constexpr size_t kPageBytes = 4096;

/// Where bus addresses begin: far from any pointer, so that mixing the two up is refused.
constexpr uint64_t kFirstIova = 1ull << 52;

class OwnMemory final : public EmuMemory {
 public:
  ~OwnMemory() override {
    for (const auto& [va, len] : allocated_) {
      munmap(va, len);
    }
  }

  int alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override {
    if (len_bytes == 0 || !std::has_single_bit(align_bytes)) {
      return -EINVAL;
    }
    const size_t len = (len_bytes + kPageBytes - 1) & ~(kPageBytes - 1);
    const size_t slack = align_bytes > kPageBytes ? align_bytes : 0;
    void* mapped =
        mmap(nullptr, len + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return -ENOMEM;
    }
    const auto start = reinterpret_cast<uintptr_t>(mapped);
    auto* va = reinterpret_cast<uint8_t*>((start + align_bytes - 1) & ~(align_bytes - 1));
    const std::lock_guard lock(mutex_);
    const uint64_t iova = take_iova(len, align_bytes);
    if (const int rc = table_.add({iova, len, va}); rc != 0) {
      munmap(mapped, len + slack);
      return rc;
    }
    allocated_.emplace(mapped, len + slack);
    iovas_.emplace(va, Range{iova, len, mapped});
    *out = {va, iova, len_bytes};
    return 0;
  }

  void free(const DmaMemory& memory) override {
    const std::lock_guard lock(mutex_);
    const auto it = iovas_.find(memory.va);
    if (it == iovas_.end() || it->second.mapped == nullptr) {
      return;
    }
    static_cast<void>(table_.remove(it->second.iova));
    const auto block = allocated_.find(it->second.mapped);
    munmap(block->first, block->second);
    allocated_.erase(block);
    iovas_.erase(it);
  }

  int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override {
    const auto addr = reinterpret_cast<uintptr_t>(va);
    if (len_bytes == 0 || ((addr | len_bytes) & (kPageBytes - 1)) != 0) {
      return -EINVAL;
    }
    const std::lock_guard lock(mutex_);
    const auto next = iovas_.lower_bound(static_cast<uint8_t*>(va) + len_bytes);
    if (next != iovas_.begin()) {
      const auto before = std::prev(next);
      if (static_cast<uint8_t*>(before->first) + before->second.len > va) {
        return -EEXIST;
      }
    }
    const uint64_t iova = take_iova(len_bytes, kPageBytes);
    if (const int rc = table_.add({iova, len_bytes, static_cast<uint8_t*>(va)}); rc != 0) {
      return rc;
    }
    iovas_.emplace(va, Range{iova, len_bytes, nullptr});
    *runs = {{va, iova, len_bytes}};
    return 0;
  }

  int unmap(void* va, size_t len_bytes) override {
    const std::lock_guard lock(mutex_);
    const auto it = iovas_.find(va);
    if (it == iovas_.end() || it->second.mapped != nullptr || it->second.len != len_bytes) {
      return -ENOENT;
    }
    const int rc = table_.remove(it->second.iova);
    iovas_.erase(it);
    return rc;
  }

  EmuView& view() override { return table_; }

 private:
  struct Range {
    uint64_t iova;
    size_t len;
    void* mapped;  // of alloc(); null for user memory
  };

  uint64_t take_iova(size_t len, size_t align) {
    const uint64_t iova = (next_iova_ + align - 1) & ~(static_cast<uint64_t>(align) - 1);
    next_iova_ = iova + len + kPageBytes;  // a hole between any two
    return iova;
  }

  std::mutex mutex_;
  model::DmaTable table_;
  std::map<void*, size_t> allocated_;
  std::map<void*, Range> iovas_;
  uint64_t next_iova_ = kFirstIova;
};

}  // namespace

std::unique_ptr<EmuMemory> own_memory() {
  return std::make_unique<OwnMemory>();
}

}  // namespace rio::pmd
