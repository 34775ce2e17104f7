/// @file
/// EAL's memory for the users of an emulated card.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pmd/bus/eal/zones.hpp"
#include "pmd/bus/emu/emu_memory.hpp"

struct rte_memseg;
struct rte_memseg_list;

namespace rio::pmd {

/// EAL's memory as windows: all memory segments of the application, which EAL maps at one place in
/// every process. Neighbours in both address spaces are one window. Follows EAL's memory events. As
/// for a real card, external memory is included if EAL has it in a heap
/// (rte_malloc_heap_memory_add), or once it was mapped (rte_dev_dma_map), but not by
/// rte_extmem_register alone. Thread-safe.
class MemsegView final : public EmuView {
 public:
  /// @return -ENOMEM, -EEXIST (no free name for the callback).
  [[nodiscard]] static int create(std::unique_ptr<MemsegView>* out);
  ~MemsegView() override;

  [[nodiscard]] bool find(uint64_t iova, EmuWindow* out) override;

  /// Add memory that EAL does not announce. @return -EEXIST: a window overlaps in bus addresses.
  [[nodiscard]] int add(void* va, uint64_t iova, size_t len_bytes);
  /// Remove the windows of [va, va + len). @return -ENOENT: there is none.
  [[nodiscard]] int remove(void* va, size_t len_bytes);
  /// The windows that cover [va, va + len), ordered by va. @return -ENOENT: they leave a gap.
  [[nodiscard]] int runs(void* va, size_t len_bytes, std::vector<IovaRun>* out);

 private:
  MemsegView() = default;
  static int on_segment(const rte_memseg_list* list, const rte_memseg* segment, void* self);
  static void on_event(int event, const void* addr, size_t len_bytes, void* self);
  void add_locked(uint8_t* va, uint64_t iova, uint64_t len_bytes);
  [[nodiscard]] bool cut_locked(const uint8_t* va, uint64_t len_bytes);

  std::string callback_name_;
  bool registered_ = false;
  std::mutex mutex_;
  std::map<uint64_t, EmuWindow> windows_;  // by bus address, disjoint; under mutex_
};

/// Rings and buffers from memzones, which all processes of the application share. The card reaches
/// all of EAL's memory (mempools, rte_malloc) at the bus addresses that EAL uses. Control path, not
/// thread-safe, except for view().
class EalMemory final : public EmuMemory {
 public:
  /// @param tag see Zones. @return 0 or -errno.
  [[nodiscard]] static int create(std::string tag, std::unique_ptr<EalMemory>* out);

  [[nodiscard]] int alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override {
    return zones_.alloc(len_bytes, align_bytes, out);
  }
  void free(const DmaMemory& memory) override { zones_.free(memory); }
  /// EAL's own memory is reachable already: only returns its runs. Other memory of this process
  /// gets its pointer as bus address, or the one given to rte_extmem_register. @return -ENOTSUP for
  /// other memory in a secondary process: the card is in the primary.
  [[nodiscard]] int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  /// @return -ENOENT if map() did not see this range.
  [[nodiscard]] int unmap(void* va, size_t len_bytes) override;
  [[nodiscard]] EmuView& view() override { return *view_; }

  /// Like map(), with a bus address of the caller's choice (rte_dev_dma_map). @return -EEXIST.
  [[nodiscard]] int map_at(void* va, uint64_t iova, size_t len_bytes) override;
  [[nodiscard]] void* shared_alloc(size_t len_bytes, size_t align_bytes) override {
    return eal_shared_alloc(len_bytes, align_bytes);
  }
  void shared_free(void* memory) override {
    if (!zones_.left_to_others()) {
      eal_shared_free(memory);
    }
  }
  /// Rings and BAR stay allocated.
  void leave_to_others() override { zones_.leave_to_others(); }

 private:
  explicit EalMemory(std::string tag) : zones_(std::move(tag)) {}
  Zones zones_;
  std::unique_ptr<MemsegView> view_;
  std::map<void*, std::pair<size_t, bool>> mapped_;  // length; whether the view was told
};

}  // namespace rio::pmd
