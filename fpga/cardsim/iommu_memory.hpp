/// @file
/// A guest's memory behind its IOMMU.
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

namespace rio::cardsim {

/// Bus addresses go through the guest's intel-iommu. The guest unmaps behind our back: before each
/// step, begin_turn() compares every table word that a translation came from, and forgets all
/// translations when one has changed. The registers are asked for over QEMU's monitor when a driver
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
  /// The IOMMU's registers.
  struct Registers {
    bool translates = false;
    uint64_t root = 0;
    bool operator==(const Registers&) const = default;
  };
  /// Scattered pages shown in one piece.
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
  bool known_ = false;  // registers_ are those of the driver that has the card
  Registers registers_;
  uint32_t gen_req_ = 0;
  std::chrono::steady_clock::time_point read_at_;
  bool failed_ = false;  // to read the registers
  bool told_ = false;
  TableWords words_;
  std::array<model::HostWindow, 256> pages_;  // found since the tables changed, by page number
  std::vector<Stitched> stitched_;
  std::vector<Stitched> stale_;  // a card may still have a pointer into them, until its next step
};

}  // namespace rio::cardsim
