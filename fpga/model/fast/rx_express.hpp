/// @file
/// Plain messages of one segment from one sender into the shared queue, in runs.
#pragma once

#include "fpga/model/core/responder.hpp"

namespace rio::model {

class RxExpress {
 public:
  RxExpress(Core& core, Responder& responder) : core_(core), responder_(responder) {}

  /// Take a run that begins with `first`. @param bytes_to_end from there to the end of the ring's
  /// memory. @param tag of the ring's lap.
  /// @return bytes taken; 0: another way has to look at the first.
  [[nodiscard]] uint32_t take(const InFrame& first, uint32_t bytes_to_end, uint32_t tag);

 private:
  [[nodiscard]] Pair* target(const InFrame& frame);
  /// @tparam full the card writes all of a last segment's 256 bytes.
  template <bool full>
  [[nodiscard]] uint32_t run(Pair& pair, const InFrame& first, uint32_t bytes_to_end, uint32_t tag);

  Core& core_;
  Responder& responder_;
};

}  // namespace rio::model
