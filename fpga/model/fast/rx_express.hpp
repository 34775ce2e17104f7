/// @file
/// Receives plain messages of one segment from one sender into the shared queue, in runs.
#pragma once

#include "fpga/model/core/responder.hpp"

namespace rio::model {

class RxExpress {
 public:
  RxExpress(Core& core, Responder& responder) : core_(core), responder_(responder) {}

  /// Take a run that begins with `first`. @param bytes_to_end bytes from `first` to the end of the
  /// ring's memory. @param tag tag of the ring's lap. @return bytes taken; 0: use another path for
  /// `first`.
  [[nodiscard]] uint32_t take(const InFrame& first, uint32_t bytes_to_end, uint32_t tag);

 private:
  [[nodiscard]] Pair* target(const InFrame& frame);
  /// @tparam full the card has the landing quirk: it writes all 256 bytes of a last segment.
  template <bool full>
  [[nodiscard]] uint32_t run(Pair& pair, const InFrame& first, uint32_t bytes_to_end, uint32_t tag);

  Core& core_;
  Responder& responder_;
};

}  // namespace rio::model
