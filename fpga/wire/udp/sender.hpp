/// @file
/// Units of one lane on their way to a peer: kept until the peer has them, and resent when lost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fpga/wire/udp/congestion.hpp"
#include "fpga/wire/udp/datagram.hpp"

namespace rio::wire::udp {

/// Used by one thread. Without I/O; times are the caller's, of a monotonic clock.
class Sender {
 public:
  /// @param window units that are kept: a power of two up to kWindowMax. @param first number of the
  /// first unit. @param congestion outlives the sender.
  Sender(uint32_t window, uint32_t first, Congestion* congestion);

  /// Get the place to build the next unit in. @return empty: the window is full.
  [[nodiscard]] std::span<uint8_t> begin(size_t bytes);
  /// Finish the unit in that place. @param bytes of it, at least 1.
  void end(size_t bytes);
  /// The next unit to be sent, lost ones first. It counts as sent. Its bytes are valid until the
  /// next heard(). @return without bytes: nothing may be sent now.
  [[nodiscard]] Part send(uint64_t now_ns);
  /// Bytes of the unit that send() would return; 0: none.
  [[nodiscard]] uint32_t next_bytes() const;
  /// Note the peer's report of the units that it has. @return 0, or -EPROTO: it claims units that
  /// were never sent; nothing was changed.
  [[nodiscard]] int heard(const Heard& heard, uint64_t now_ns);
  /// When look() is due; UINT64_MAX: never, since nothing is under way.
  [[nodiscard]] uint64_t due_ns() const;
  /// Call it after due_ns(): everything under way counts as lost.
  void look(uint64_t now_ns);
  /// How many times in a row look() has found the peer silent. After too many the caller gives the
  /// peer up.
  [[nodiscard]] uint32_t silent() const { return silent_; }
  /// Units pushed since the beginning; wraps at 2^32.
  [[nodiscard]] uint32_t pushed() const { return end_; }
  /// Units that the peer does not have yet.
  [[nodiscard]] uint32_t kept() const { return end_ - begin_; }

 private:
  enum class State : uint8_t { kWaiting, kUnderWay, kLost, kThere };
  struct Place {
    std::vector<uint8_t> memory;  // kept for the next unit
    uint32_t length = 0;
    State state = State::kWaiting;
    bool once = true;    // sent at most once, so that an answer tells which sending arrived
    uint64_t order = 0;  // order of the last sending
    uint64_t sent_ns = 0;
  };
  [[nodiscard]] Place& place(uint32_t unit) { return places_[unit & mask_]; }
  [[nodiscard]] const Place& place(uint32_t unit) const { return places_[unit & mask_]; }
  [[nodiscard]] bool find_next(uint32_t* unit) const;
  void arrived(uint32_t unit, uint64_t now_ns);
  /// Count units under way as lost. @param order last sendings up to this one.
  void lose(uint64_t order, uint64_t now_ns);

  const uint32_t mask_;
  Congestion* const congestion_;
  uint32_t begin_;       // the first unit that the peer lacks
  uint32_t next_;        // the first that was never sent
  uint32_t end_;         // behind the last
  uint32_t allowed_;     // end of the units for which the peer has room
  uint32_t lost_ = 0;    // units in kLost
  uint32_t flying_ = 0;  // units in kUnderWay
  uint64_t order_ = 0;
  uint64_t arrived_order_ = 0;  // the last sending that is known to have arrived
  uint64_t waits_ns_ = 0;       // since when nothing new was heard
  uint32_t silent_ = 0;
  std::vector<Place> places_;
};

}  // namespace rio::wire::udp
