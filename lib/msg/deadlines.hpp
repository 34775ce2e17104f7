/// @file
/// Links that wait for an answer: asked again, or given up.
#pragma once

#include <cstdint>

#include "lib/msg/peers.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/speaker.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Of one port; its thread.
class Deadlines {
 public:
  /// @param deliver_ms as PortConfig's.
  Deadlines(Endpoint& endpoint, Peers& peers, Speaker& speaker, Sessions& sessions,
            uint32_t deliver_ms)
      : endpoint_(endpoint),
        peers_(peers),
        speaker_(speaker),
        sessions_(sessions),
        deliver_ns_(uint64_t{deliver_ms} * 1'000'000) {}

  /// Now and then: look at all links that Peers::watch() was called for.
  void look();
  /// When look() has something to do next, by now_ns(). @param bound_ns what it is at most.
  [[nodiscard]] uint64_t next_ns(uint64_t bound_ns) const;

 private:
  void look_at(Link& link, uint64_t now);
  [[nodiscard]] bool end_if_hole(Link& link, uint64_t now);

  Endpoint& endpoint_;
  Peers& peers_;
  Speaker& speaker_;
  Sessions& sessions_;
  uint64_t deliver_ns_;
};

}  // namespace rio::msg
