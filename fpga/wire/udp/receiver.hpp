/// @file
/// Units of one lane as they arrive: put in order, each given once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fpga/wire/udp/datagram.hpp"

namespace rio::wire::udp {

enum class Arrival : uint8_t {
  kNew,
  kAgain,    ///< it was here before: its sender missed the answer, and is told again
  kOutside,  ///< beyond the window: no honest sender does that
};

/// Used by one thread. Without I/O and without a clock.
class Receiver {
 public:
  /// @param window units that are kept, a power of two up to kWindowMax.
  /// @param first number of the first unit.
  Receiver(uint32_t window, uint32_t first);

  /// A unit has come. Its bytes are copied if it is new.
  [[nodiscard]] Arrival put(uint32_t unit, std::span<const uint8_t> bytes);
  /// Whether a unit is the next one to give, so that nothing has to be kept: take it and skip().
  [[nodiscard]] bool is_next(uint32_t unit) const { return unit == taken_ && taken_ == next_; }
  void skip();
  /// The next unit in order, empty if it is not here. Valid until pop().
  [[nodiscard]] std::span<const uint8_t> front() const;
  /// The unit at front(), which must be there, is done with: its place is free.
  void pop();
  /// Units delivered since the beginning; wraps at 2^32.
  [[nodiscard]] uint32_t given() const { return taken_; }
  /// The answer for the sender.
  [[nodiscard]] Heard heard() const;

 private:
  struct Place {
    std::vector<uint8_t> bytes;  // keeps its memory for the next unit
    bool full = false;
  };
  [[nodiscard]] const Place& place(uint32_t unit) const { return places_[unit & mask_]; }
  void find_next();

  const uint32_t mask_;
  uint32_t taken_;  // the next unit to give
  uint32_t next_;   // the first that is not here
  std::vector<Place> places_;
};

}  // namespace rio::wire::udp
