/// @file
/// The ways of an endpoint to the memory of peers by the cards of its port, and the choice among
/// them. See docs/decisions/0046-memory-of-peers-over-rails.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lib/ofi/card_way.hpp"

namespace rio::ofi {

/// How a card reaches the owner of memory.
struct CardTarget {
  CardWay* way = nullptr;     ///< null: no card may do the transfer
  msg::Path* path = nullptr;  ///< null: we or the peer have one rail
  uint32_t dest_id = 0;
  uint32_t remote = 0;  ///< the owner's rail
  uint64_t rails = 0;   ///< AskHeader::address of a request for the window
};

/// Under a Guard.
class CardWays {
 public:
  /// Call first. @param border as for CardWay::start().
  void start(msg::MessagePort& port, uint64_t border) {
    port_ = &port;
    border_ = border;
    count_ = port.rails().count();
    for (msg::Rail* const rail : port.rails()) {
      ways_[rail->index].start(port, *rail, border);
    }
  }

  /// Hot. Choose the card for a transfer. @param to the peer's context for memory.
  [[nodiscard]] CardTarget choose(tag::Address to, uint64_t bytes) {
    if (count_ > 1) {
      return choose_rail(to, bytes);
    }
    const bool may = ways_[0].may(to, bytes);
    return {may ? &ways_[0] : nullptr, nullptr, tag::dest_id_of(to)};
  }
  /// Most bytes of an access by a target whose window was learnt. Longer ones go by messages.
  [[nodiscard]] uint64_t bytes_max(const CardTarget& target) const;
  /// Whether the port has several cards, so that what one of them cannot do may be repeated.
  [[nodiscard]] bool is_several() const { return count_ > 1; }
  void progress() {
    for (uint32_t i = 0; i < count_; ++i) {
      ways_[i].progress();
    }
  }
  /// Hot. Whether progress() would end transfers at once.
  [[nodiscard]] bool has_done() const {
    return std::any_of(ways_.begin(), ways_.begin() + count_,
                       [](const CardWay& way) { return way.has_done(); });
  }
  /// Stop the DMA queues where transfers of this endpoint are under way, for good.
  void stop() {
    for (uint32_t i = 0; i < count_; ++i) {
      ways_[i].stop();
    }
  }
  [[nodiscard]] msg::MessagePort& port() { return *port_; }

 private:
  [[nodiscard]] CardTarget choose_rail(tag::Address to, uint64_t bytes);

  msg::MessagePort* port_ = nullptr;
  uint64_t border_ = 0;
  uint32_t count_ = 0;
  std::array<CardWay, msg::kRailsMax> ways_;
};

}  // namespace rio::ofi
