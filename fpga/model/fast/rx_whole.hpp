/// @file
/// Receives whole messages, of one segment or several, one by one.
#pragma once

#include "fpga/model/core/responder.hpp"
#include "fpga/model/reference/rx_engine.hpp"

namespace rio::model {

class RxWhole {
 public:
  RxWhole(Core& core, Responder& responder, Admission& admission, const RxEngine& rx)
      : core_(core), responder_(responder), admission_(admission), rx_(rx) {}

  /// Take a message. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_message(const InFrame& frame);
  /// Whether a frame's length, segments and mailbox are consistent.
  [[nodiscard]] static bool sane(const Frame& frame);
  /// Write a message's bytes where its segments would land.
  void land(const Landing& landing, const InFrame& frame);

 private:
  [[nodiscard]] Answer take(const InFrame& frame);

  Core& core_;
  Responder& responder_;
  Admission& admission_;
  const RxEngine& rx_;
};

}  // namespace rio::model
