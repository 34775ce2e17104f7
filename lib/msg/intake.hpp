/// @file
/// Takes messages from the shared queue and gives them to contexts.
#pragma once

#include <array>
#include <cstdint>

#include "lib/msg/buffers.hpp"
#include "lib/msg/context_slot.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_stats.hpp"
#include "lib/msg/sorter.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Of one port; its thread. A run is some messages of one sender for one context: its first message
/// is checked field by field, the others are compared with it in two words. Messages that are not
/// plain are the Sorter's.
class Intake {
 public:
  Intake(pmd::SharedRxQueue& ring, Buffers& buffers, const Peers& peers, Sorter& sorter,
         const Large& large, const ContextSlots& contexts, PortStats& stats)
      : ring_(ring),
        peers_(peers),
        contexts_(contexts),
        buffers_(buffers),
        sorter_(sorter),
        large_(large),
        stats_(stats) {}

  /// Hot. Take what has arrived, up to a burst or two, and give the card new buffers.
  /// @param late as Large::late_possible(). @return messages taken.
  [[nodiscard]] uint32_t take(bool late);
  /// Take all that has arrived. No buffers are posted meanwhile, so it ends.
  void take_all();

  /// Messages of users that were taken in runs.
  [[nodiscard]] uint64_t received() const { return received_; }

 private:
  static constexpr uint32_t kBurst = Buffers::kBurst;

  [[nodiscard]] Link* begin_run(const Arrival& arrival, const HeaderWords& header) const;
  [[nodiscard]] bool take_alone();
  [[nodiscard]] uint32_t take_run(Link& link, HeaderWords first, uint32_t source, uint32_t n);
  [[nodiscard]] uint32_t fetch_plain();
  [[nodiscard]] uint32_t fetch_each();

  pmd::SharedRxQueue& ring_;
  const Peers& peers_;
  const ContextSlots& contexts_;
  Buffers& buffers_;
  uint64_t received_ = 0;
  Sorter& sorter_;
  const Large& large_;
  PortStats& stats_;
  std::array<Arrival, kBurst> others_;  // of the burst at hand, not plain
};

}  // namespace rio::msg
