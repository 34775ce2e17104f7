/// @file
/// Which rail the next small messages of a peer use, and over which rails the stripes of a transfer
/// from it are granted. See docs/decisions/0045-rail-states-and-policies.md, "Policies".
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <cassert>
#include <cstdint>

#include "lib/rail/rail_loads.hpp"
#include "lib/rail/rail_policy.hpp"
#include "lib/rail/rail_set.hpp"

namespace rio::rail {

/// The choice for one peer.
///
/// Rails that are not up are used only if no rail to the peer is up; rails that the policy does not
/// want (the peer's other rails in `static`, those of the other direction in `unidirectional`) only
/// if none that it wants is up.
class RailChooser {
 public:
  /// Messages of a transfer for which another rail pays: a grant is a message too.
  static constexpr uint32_t kMessagesPerRail = 4;

  /// @param rails those that reach the peer; not empty. @param peer a number of the peer, which
  /// spreads peers over rails, such as Link::index(). @param lower_sends of `unidirectional`: the
  /// lower half of the rails sends and the upper half receives; the two sides of a peer set it
  /// differently if rail i reaches only rail i.
  RailChooser(RailPolicy policy, RailSet rails, uint32_t peer, bool lower_sends = true);

  /// The rail of a peer's next small messages. To be called when the rail of the last ones is idle,
  /// has no room or may not be used; until then the messages stay there. `weighted` leaves a rail
  /// only for one that would finish in half the time.
  /// @param loads of what is to be sent. @param bytes of the message. @return the rail, 0 to
  /// kRails - 1; -EAGAIN: no rail that may be used has room; -ENETDOWN: none may be used now.
  [[nodiscard]] int small_rail(const RailView& view, const RailLoads& loads, uint32_t bytes);

  /// Receiver's side: the rails for the stripes of a transfer from the peer. `static` gives one;
  /// `dynamic` those that are free, or else all; `weighted` and `unidirectional` all. A short
  /// transfer gets fewer, those that are expected to finish first. @param loads of what was
  /// granted.
  /// @param messages of the transfer's cut, at least 1. @return empty: none may be used now, or
  /// none of them has room.
  [[nodiscard]] RailSet stripe_rails(const RailView& view, const RailLoads& loads,
                                     uint32_t messages) const;
  /// Whether each stripe is an equal part of the transfer, or as much as a rail drains.
  [[nodiscard]] bool has_equal_stripes() const { return policy_ != RailPolicy::kWeighted; }

  /// The set of rails that reach the peer has changed; not empty.
  void set_rails(RailSet rails);

 private:
  /// The rails that may be used, of those that the policy wants if possible.
  [[nodiscard]] static RailSet able(const RailView& view, RailSet wanted) {
    const RailSet best = view.up & wanted;
    if (best != 0) [[likely]] {
      return best;
    }
    return view.up != 0 ? view.up : view.last_resort;
  }
  [[nodiscard]] uint32_t choose(RailSet rails, const RailLoads& loads, uint32_t bytes);

  RailPolicy policy_;
  bool lower_sends_;
  uint32_t peer_;
  uint32_t rail_ = 0;  // of the peer's last small message
  uint32_t turn_ = 0;  // of `dynamic`: where the search for a rail begins
  RailSet send_rails_ = 0;
  RailSet receive_rails_ = 0;
};

}  // namespace rio::rail
