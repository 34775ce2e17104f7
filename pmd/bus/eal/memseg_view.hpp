/// @file
/// An emulated card's view of EAL's memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
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

}  // namespace rio::pmd
