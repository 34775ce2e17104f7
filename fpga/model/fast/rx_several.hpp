/// @file
/// Receives plain messages of several segments, each of which travels as one frame, into the shared
/// queue.
#pragma once

#include "fpga/model/core/responder.hpp"
#include "fpga/model/fast/rx_plain.hpp"
#include "fpga/model/reference/rx_engine.hpp"

namespace rio::model {

class RxSeveral {
 public:
  RxSeveral(Core& core, Responder& responder, RxEngine& rx)
      : core_(core), responder_(responder), rx_(rx) {}

  /// Take a message whose source is one of its sender's. @return false: nothing was done; use
  /// another path.
  [[nodiscard]] bool take(const InFrame& frame);
  /// Take a kMapped, and answer it, unless it was revoked. @param windows of its sender; null:
  /// none.
  /// @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool take_mapped(const InFrame& frame, Windows* windows);
  /// Hot. Take the next message, if it is of several segments; the answer is the responder's to
  /// send. @param word its load_frame_word(). @param aim of RxPlain, valid. @return as take().
  [[nodiscard]] bool take_single(const Inbound& in, uint64_t word, const RxPlain::Aim& aim);
  /// Write a message to the host. The caller answers it. @param revocable the frame, if its sender
  /// may revoke it; null: it cannot. @return as take().
  [[nodiscard]] bool land(const InFrame& frame, const uint8_t* revocable = nullptr);

 private:
  Core& core_;
  Responder& responder_;
  RxEngine& rx_;
};

}  // namespace rio::model
