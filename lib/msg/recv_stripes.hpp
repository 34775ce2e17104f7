/// @file
/// The receiver's stripes: parts of large transfers, each granted to one rail. See
/// docs/decisions/0045-rail-states-and-policies.md, "Stripes".
#pragma once

#include <cstdint>

#include "base/slab.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/transfer.hpp"
#include "lib/rail/rail_set.hpp"

namespace rio::msg {

/// Part of a port's receiver; used only on the port's thread. A stripe is a RecvTransfer of its
/// own, with queue, cut, grant and attempts. It waits for a queue of its rail, and takes its part
/// of the transfer when it has one: so a rail brings as much as it is able to.
class RecvStripes {
 public:
  /// Shortest part of a transfer that is not cut into equal ones, unless its end is nearer.
  static constexpr uint64_t kBytesLeast = 32 * 1024;
  /// A part is one of so many of its transfer, if that is not shorter.
  static constexpr uint32_t kParts = 64;
  static_assert(2 * kParts < kStripesMax);

  explicit RecvStripes(const PortObjects& works) : works_(works) {}

  /// Let several rails bring a transfer that is not granted yet. @return false: one will do, or no
  /// memory; nothing has changed but the path of the transfer.
  [[nodiscard]] bool divide(RecvTransfer& whole);
  /// A stripe has a queue: give it the next part of its transfer.
  void take(RecvTransfer& stripe);
  /// A stripe is over, and in no list. It waits for a queue again, or is freed. @return the whole
  /// transfer, if that was its last stripe; else null.
  [[nodiscard]] RecvTransfer* end(RecvTransfer& stripe, int status);
  /// Free the stripes of a transfer that wait for a queue and have no part.
  void drop_idle(RecvTransfer& whole);
  /// Free what a transfer needed for its stripes; none is left.
  void free(RecvTransfer& whole);
  /// A stripe with a part changes its rail.
  void move(const RecvTransfer& stripe, const Path& to);

 private:
  // A rail receives one stripe while it grants the next.
  static constexpr uint32_t kEachRail = 2;

  [[nodiscard]] bool add(RecvTransfer& whole, Path& path);
  void make(RecvTransfer& stripe, Stripes<RecvTransfer>& of, Path& path);
  [[nodiscard]] bool goes_on(const RecvTransfer& stripe, int status) const;

  PortObjects works_;
  base::Slab<RecvTransfer> stripes_;
  base::Slab<Stripes<RecvTransfer>> divided_;
};

}  // namespace rio::msg
