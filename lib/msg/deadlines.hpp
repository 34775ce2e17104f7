/// @file
/// Asks again, or gives up, when a peer does not answer in time.
#pragma once

#include <cstdint>

#include "lib/msg/peers.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/speaker.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread.
class Deadlines {
 public:
  /// @param deliver_ms as PortConfig's.
  Deadlines(const PortObjects& objects, uint32_t deliver_ms)
      : on_(objects), deliver_ns_(uint64_t{deliver_ms} * 1'000'000) {}

  /// Check all links that Peers::watch() was called for. Called every now and then.
  void look();
  /// When look() next has something to do, by now_ns(). @param bound_ns upper bound of the result.
  [[nodiscard]] uint64_t next_ns(uint64_t bound_ns) const;

 private:
  void check_link(Link& link, uint64_t now);
  [[nodiscard]] bool end_if_hole(Link& link, uint64_t now);

  PortObjects on_;
  uint64_t deliver_ns_;
};

}  // namespace rio::msg
