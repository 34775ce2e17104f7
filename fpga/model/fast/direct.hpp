/// @file
/// Fast path between two cards that one thread steps: a plain message is sent, lands and is
/// answered in one go, since nothing could observe it in flight. Buffers, letters, the receive map
/// and dedicated rings are obeyed. Messages that are not plain, or would be refused, go through the
/// wire.
#pragma once

#include "fpga/model/core/core.hpp"

namespace rio::model {

class Direct {
 public:
  explicit Direct(Core& core) : core_(core) {}

  /// Carry a run of plain messages to the last destination. @param count posted entries. @return
  /// messages carried; 0: use another path.
  [[nodiscard]] uint32_t send(Pair& pair, Ring& ring, uint32_t count) {
    return core_.wire->may_enter_neighbour(core_.thread) ? enter(pair, ring, count) : 0;
  }

 private:
  struct Sides;

  [[nodiscard]] uint32_t enter(Pair& pair, Ring& ring, uint32_t count);
  [[nodiscard]] uint32_t carry(Pair& pair, Ring& ring, uint32_t count, Core& peer) const;
  /// @tparam several true: messages of several segments; false: of one segment. @tparam brief the
  /// receiver has short completions. @return messages carried.
  template <bool several, bool brief>
  [[nodiscard]] uint32_t carry_run(const Sides& sides, uint32_t count) const;

  Core& core_;
  uint8_t all_letters_ = static_cast<uint8_t>((1u << core_.config.letters) - 1);
};

}  // namespace rio::model
