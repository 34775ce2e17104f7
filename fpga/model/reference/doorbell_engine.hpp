/// @file
/// Sends and receives doorbells. They are transactions, not messages. docs/card.md, Sending, Rings
#pragma once

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

class DoorbellEngine {
 public:
  DoorbellEngine(Core& core, Transactions& transactions, Responder& responder)
      : core_(core), transactions_(transactions), responder_(responder) {}

  /// Fetch the doorbell at the head of the transmit ring, and send it. @return false: no
  /// transaction is free; the ring waits.
  [[nodiscard]] bool start(Pair& pair, Ring& ring, Flow& flow, const regs::TxDesc& desc);
  void on_end(Pair& pair, const Transaction& doorbell, regs::Status status);
  /// Receive a doorbell. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_request(const InFrame& frame);

 private:
  [[nodiscard]] Answer take(const InFrame& frame);

  Core& core_;
  Transactions& transactions_;
  Responder& responder_;
};

}  // namespace rio::model
