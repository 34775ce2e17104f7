/// @file
/// The memory of a guest with an IOMMU.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/mapping.hpp"
#include "fpga/cardsim/guest_memory.hpp"
#include "fpga/cardsim/iommu_walk.hpp"
#include "fpga/cardsim/monitor.hpp"
#include "fpga/name/card_name.hpp"

namespace rio::cardsim {

/// Translates bus addresses by the guest's intel-iommu. The guest may unmap without notice: before
/// each step, begin_turn() compares every table word that a translation used, and drops all
/// translations when one has changed. The registers are read over QEMU's monitor when a driver
/// takes the card over, and when an address is not found.
class IommuMemory final : public GuestMemory {
 public:
  /// @param bdf the card's bus << 8 | devfn in the guest.
  IommuMemory(const std::string& ram_path, std::shared_ptr<Monitor> monitor, uint16_t bdf);

  [[nodiscard]] bool find(uint64_t iova, model::HostWindow* out) override;
  [[nodiscard]] bool find_whole(uint64_t iova, uint64_t len_bytes, model::HostWindow* out) override;
  void begin_turn(uint32_t gen_req) override;
  void serve() override { monitor_->serve(); }
  [[nodiscard]] bool guest_gone() const override { return monitor_->gone(); }
  [[nodiscard]] bool guest_here() const override { return monitor_->here(); }
  void forget_guest() override;

 private:
  /// The registers of the IOMMU.
  struct Registers {
    bool translates = false;
    uint64_t root = 0;
    bool operator==(const Registers&) const = default;
  };
  /// Scattered pages, shown as one contiguous piece.
  struct Stitched {
    model::HostWindow window;
    base::Mapping memory;
  };

  void forget_translations();
  [[nodiscard]] bool look_up(uint64_t iova, model::HostWindow* out);
  [[nodiscard]] bool read_registers();
  [[nodiscard]] bool stitch(uint64_t iova, uint64_t len_bytes, model::HostWindow* out);

  std::shared_ptr<Monitor> monitor_;
  uint16_t bdf_;
  bool known_ = false;  // registers_ belong to the driver that has the card
  Registers registers_;
  uint32_t gen_req_ = 0;
  std::chrono::steady_clock::time_point read_at_;
  bool failed_ = false;  // to read the registers
  bool told_ = false;
  TableWords words_;
  std::array<model::HostWindow, 256> pages_;  // found since the tables last changed, by page number
  std::vector<Stitched> stitched_;
  std::vector<Stitched> stale_;  // a card may still point into them until its next step
};

/// Make the guest's memory: with a monitor it obeys the guest's IOMMU.
[[nodiscard]] std::unique_ptr<GuestMemory> guest_memory_of(const name::Guest& guest);

}  // namespace rio::cardsim
