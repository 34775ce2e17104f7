/// @file
/// Gives each frame that has come to the engine that it is for.
#pragma once

#include "fpga/model/card/engines.hpp"

namespace rio::model {

class Dispatch {
 public:
  Dispatch(Core& core, Engines& engines) : core_(core), engines_(engines) {}

  /// Take what a partner has answered. Bounded.
  void take_responses(Inbound& in);
  /// Take what a partner has sent, and answer it. Bounded. @param frame the first of it.
  void take_requests(Inbound& in, const InFrame* frame);

 private:
  /// @return bytes of the frames that were taken; 0: no more now.
  [[nodiscard]] uint32_t take(Inbound& in, const InFrame& frame);
  /// @return false: no room for the answer, come again.
  [[nodiscard]] bool on_request(const InFrame& frame);
  void on_response(const InFrame& frame);

  Core& core_;
  Engines& engines_;
};

}  // namespace rio::model
