/// @file
/// The memory of a QEMU guest, in its card's view.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "base/mapping.hpp"
#include "fpga/cardsim/guest_ram.hpp"
#include "fpga/cardsim/iommu_walk.hpp"
#include "fpga/cardsim/monitor.hpp"
#include "fpga/model/host_memory.hpp"
#include "fpga/name/card_name.hpp"

namespace rio::cardsim {

/// Without a monitor, bus addresses are guest-physical ones. With a monitor, the guest's
/// intel-iommu translates them. The guest may unmap without notice: before each step, and at each
/// access, every table word that a translation used is compared, and all translations are dropped
/// when one has changed. The registers are read over the monitor when a driver takes the card over,
/// and when an address is not found. One thread.
class GuestMemory final : public model::HostMemory {
 public:
  explicit GuestMemory(const name::Guest& guest);

  [[nodiscard]] bool find(uint64_t iova, model::HostWindow* out) override;
  [[nodiscard]] bool find_whole(uint64_t iova, uint64_t len_bytes, model::HostWindow* out) override;

  [[nodiscard]] bool is_silent() const override { return monitor_ != nullptr; }

  /// Called before each step: find out which memory the guest has unmapped. @param gen_req the
  /// card's word GEN_REQ: a new value means that a driver takes the card over.
  void begin_turn(uint32_t gen_req);
  /// Called between steps: take up or drop the connection to QEMU; does not wait.
  void serve();
  /// Whether QEMU was connected and has gone; only a monitor shows that.
  [[nodiscard]] bool guest_gone() const { return monitor_ != nullptr && monitor_->gone(); }
  [[nodiscard]] bool guest_here() const { return monitor_ != nullptr && monitor_->here(); }
  /// The guest has gone, and no card uses its memory: another guest may come.
  void forget_guest();

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
  void check_translations();
  [[nodiscard]] bool look_up(uint64_t iova, model::HostWindow* out);
  [[nodiscard]] bool find_physical(uint64_t address, model::HostWindow* out);
  [[nodiscard]] bool read_registers();
  [[nodiscard]] bool stitch(uint64_t iova, uint64_t len_bytes, model::HostWindow* out);

  name::Guest guest_;
  std::unique_ptr<GuestRam> ram_;
  std::shared_ptr<Monitor> monitor_;  // null: there is no IOMMU
  bool known_ = false;                // registers_ belong to the driver that has the card
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

}  // namespace rio::cardsim
