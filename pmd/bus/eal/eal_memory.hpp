/// @file
/// EAL's memory for the users of an emulated card.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pmd/bus/eal/memseg_view.hpp"
#include "pmd/bus/eal/zones.hpp"
#include "pmd/bus/emu/emu_memory.hpp"

namespace rio::pmd {

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
