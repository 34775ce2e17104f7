/// @file
/// Between two cards of one process that one thread steps, a plain message is sent, lands and is
/// answered in one go: nothing could see it fly. Buffers, letters, the receive map and dedicated
/// rings are obeyed; what is not plain, or would be refused, goes through the wire.
#pragma once

#include "fpga/model/core/core.hpp"

namespace rio::model {

class Direct {
 public:
  explicit Direct(Core& core)
      : core_(core), all_letters_(static_cast<uint8_t>((1u << core.config.letters) - 1)) {}

  /// Carry a run of plain messages, of one segment or several, to the last destination.
  /// @param count posted entries. @return how many; 0: another way is needed.
  [[nodiscard]] uint32_t send(Pair& pair, Ring& ring, uint32_t count) {
    return core_.wire->may_enter_neighbour(core_.thread) ? enter(pair, ring, count) : 0;
  }

 private:
  struct Sides;

  [[nodiscard]] uint32_t enter(Pair& pair, Ring& ring, uint32_t count);
  [[nodiscard]] uint32_t carry(Pair& pair, Ring& ring, uint32_t count, Core& peer) const;
  /// @tparam several messages of several segments; else of one. @return how many there were in a
  /// row.
  template <bool several>
  [[nodiscard]] uint32_t carry_run(const Sides& sides, uint32_t count) const;

  Core& core_;
  uint8_t all_letters_;
};

}  // namespace rio::model
