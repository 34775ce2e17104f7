/// @file
/// Plain messages of one segment through the ring between two cards, in runs.
#pragma once

#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class TxExpress {
 public:
  /// @param tx answers to what is not plain are for it.
  TxExpress(Core& core, TxEngine& tx) : core_(core), tx_(tx) {}

  /// Send a run to the last destination. The reader sees it after FrameWriter::publish().
  /// @param count posted entries. @return how many; 0: another way has to look at the first.
  [[nodiscard]] uint32_t send(Pair& pair, Ring& ring, uint32_t count);
  /// Answers to messages: plain ones in a run.
  void on_acks(const InFrame& frame);

 private:
  void settle(Pair& pair, Flow& flow, const uint8_t* acks, uint32_t length);

  Core& core_;
  TxEngine& tx_;
};

}  // namespace rio::model
