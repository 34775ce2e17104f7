#include <bit>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "base/mapping.hpp"
#include "fpga/model/host_memory.hpp"
#include "pmd/bus/emu/emu_memory.hpp"

namespace rio::pmd {
namespace {

constexpr size_t kPageBytes = 4096;

/// Where bus addresses begin: far from any pointer, so that mixing the two up is refused.
constexpr uint64_t kFirstIova = 1ull << 52;

/// Smallest memory that partners may map: slots of messages are larger, most rings are not, and
/// each area costs a descriptor.
constexpr size_t kReadableMin = 128 * 1024;

class OwnMemory final : public EmuMemory {
 public:
  ~OwnMemory() override {
    for (const auto& [va, range] : iovas_) {
      areas_->remove(range.memory.va());
    }
  }
  int alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override {
    return alloc(len_bytes, align_bytes, false, out);
  }

  int alloc_readable(size_t len_bytes, size_t align_bytes, DmaMemory* out) override {
    return alloc(len_bytes, align_bytes, len_bytes >= kReadableMin, out);
  }

  std::shared_ptr<base::ReadableAreas> readable_areas() override { return areas_; }

  void free(const DmaMemory& memory) override {
    const std::lock_guard lock(mutex_);
    const auto it = iovas_.find(memory.va);
    if (it == iovas_.end() || !it->second.memory.valid()) {
      return;
    }
    static_cast<void>(table_.remove(it->second.iova));
    areas_->remove(it->second.memory.va());
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
    iovas_.emplace(va, Range{iova, len_bytes, {}});
    *runs = {{va, iova, len_bytes}};
    return 0;
  }

  int unmap(void* va, size_t len_bytes) override {
    const std::lock_guard lock(mutex_);
    const auto it = iovas_.find(va);
    if (it == iovas_.end() || it->second.memory.valid() || it->second.len != len_bytes) {
      return -ENOENT;
    }
    const int rc = table_.remove(it->second.iova);
    iovas_.erase(it);
    return rc;
  }

  EmuView& view() override { return table_; }

 private:
  /// Memory of alloc(), with a descriptor if partners may map it; empty for user memory.
  struct Memory {
    base::Mapping own;
    base::SharedMemory shared;
    [[nodiscard]] bool valid() const { return own.valid() || shared.valid(); }
    [[nodiscard]] uint8_t* va() const { return shared.valid() ? shared.va() : own.va(); }
  };
  struct Range {
    uint64_t iova;
    size_t len;
    Memory memory;
  };

  [[nodiscard]] static bool take_memory(size_t len, size_t align_bytes, bool readable,
                                        Memory* out) {
    using base::SharedMemory;
    return (readable && SharedMemory::create(len, align_bytes, SharedMemory::Others::kRead,
                                             &out->shared) == 0) ||
           base::Mapping::of_memory(len, align_bytes, &out->own) == 0;
  }

  int alloc(size_t len_bytes, size_t align_bytes, bool readable, DmaMemory* out) {
    if (len_bytes == 0 || !std::has_single_bit(align_bytes)) {
      return -EINVAL;
    }
    const size_t len = (len_bytes + kPageBytes - 1) & ~(kPageBytes - 1);
    Memory memory;
    if (!take_memory(len, align_bytes, readable, &memory)) {
      return -ENOMEM;
    }
    uint8_t* const va = memory.va();
    const std::lock_guard lock(mutex_);
    const uint64_t iova = take_iova(len, align_bytes);
    if (const int rc = table_.add({iova, len, va}); rc != 0) {
      return rc;
    }
    if (memory.shared.valid()) {
      areas_->add(memory.shared);
    }
    // The user may have freed memory that is mapped still: then its entry is stale, and goes.
    iovas_.insert_or_assign(va, Range{iova, len, std::move(memory)});
    *out = {va, iova, len_bytes};
    return 0;
  }

  uint64_t take_iova(size_t len, size_t align) {
    const uint64_t iova = (next_iova_ + align - 1) & ~(static_cast<uint64_t>(align) - 1);
    next_iova_ = iova + len + kPageBytes;  // a hole between any two
    return iova;
  }

  const std::shared_ptr<base::ReadableAreas> areas_ = std::make_shared<base::ReadableAreas>();
  std::mutex mutex_;
  model::DmaTable table_;
  std::map<void*, Range> iovas_;
  uint64_t next_iova_ = kFirstIova;
};

}  // namespace

std::unique_ptr<EmuMemory> own_memory() {
  return std::make_unique<OwnMemory>();
}

}  // namespace rio::pmd
