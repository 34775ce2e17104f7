/// @file
/// Takes messages from the shared queue of a rail and gives them to contexts.
#pragma once

#include <array>
#include <cstdint>

#include "lib/msg/buffers.hpp"
#include "lib/msg/config.hpp"
#include "lib/msg/context_slot.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/receive_queues.hpp"
#include "lib/msg/sorter.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One per rail; used only on the port's thread. A run is several messages from one sender to one
/// context: the first one is checked field by field, the others only by comparing two header words.
/// Messages that fit no run go to Sorter.
class Intake {
 public:
  Intake(const PortObjects& port, Rail& rail);

  /// Hot. Take arrivals, up to two bursts, and post new buffers to the card. @param late
  /// ReceiveQueues::late_possible(). @return messages taken.
  [[nodiscard]] uint32_t take(bool late);
  /// Take all arrivals. It posts no buffers meanwhile, so it ends.
  void take_all();

  /// Count of user messages taken by the fast path.
  [[nodiscard]] uint64_t received() const { return received_; }

 private:
  static constexpr uint32_t kBurst = BufferRing::kBurst;

  [[nodiscard]] Link* begin_run(const Arrival& arrival, const HeaderWords& header) const;
  [[nodiscard]] uint32_t take_arrived(bool late);
  [[nodiscard]] bool take_alone();
  [[nodiscard]] uint32_t take_run(Link& link, HeaderWords first, uint32_t source, uint32_t n);
  [[nodiscard]] uint32_t fetch_plain();
  [[nodiscard]] uint32_t fetch_each();

  pmd::SharedRxQueue& ring_;
  const Peers& peers_;
  const ContextSlots& contexts_;
  BufferRing& buffers_;
  uint64_t received_ = 0;
  Sorter& sorter_;
  const ReceiveQueues& queues_;
  Rail& rail_;
  Buffers& pool_;
  PortStats& stats_;
  std::array<Arrival, kBurst> unsorted_;  // messages of the current burst for Sorter
};

}  // namespace rio::msg
