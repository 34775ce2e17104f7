/// @file
/// Sends plain messages of one segment through the ring between two cards, in runs.
#pragma once

#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class TxExpress {
 public:
  /// @param tx handles answers to messages that are not plain.
  TxExpress(Core& core, TxEngine& tx) : core_(core), tx_(tx) {}

  /// Send a run to the last destination. The reader sees it after FrameWriter::publish(). @param
  /// count posted entries. @return messages sent; 0: use another path for the first one.
  [[nodiscard]] uint32_t send(Pair& pair, Ring& ring, uint32_t count);
  /// Process answers to messages; those to plain messages in runs.
  void on_acks(const InFrame& frame);

 private:
  void settle(Pair& pair, Flow& flow, const uint8_t* acks, uint32_t length);

  Core& core_;
  TxEngine& tx_;
};

}  // namespace rio::model
