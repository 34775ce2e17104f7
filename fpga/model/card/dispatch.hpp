/// @file
/// Passes each arrived frame to its engine.
#pragma once

#include "fpga/model/card/engines.hpp"

namespace rio::model {

class Dispatch {
 public:
  Dispatch(Core& core, Engines& engines) : core_(core), engines_(engines) {}

  /// Take a partner's answers. Bounded.
  void take_responses(Inbound& in);
  /// Take a partner's requests and messages, and answer them. Bounded. @param frame the first one.
  void take_requests(Inbound& in, const InFrame* frame);

 private:
  /// Take one frame, or a run of frames. @return bytes taken; 0: nothing more can be taken now.
  [[nodiscard]] uint32_t take(Inbound& in, const InFrame& frame);
  /// Handle one frame. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_request(const InFrame& frame);
  void on_response(const InFrame& frame);

  Core& core_;
  Engines& engines_;
};

}  // namespace rio::model
