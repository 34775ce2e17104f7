/// @file
/// The transmit side in fast mode: chooses the fastest path that posted messages may take.
#pragma once

#include "fpga/model/fast/direct.hpp"
#include "fpga/model/fast/tx_pull.hpp"
#include "fpga/model/fast/tx_single.hpp"

namespace rio::model {

class FastTx {
 public:
  /// @param tx handles messages that are not plain, and answers to them.
  FastTx(Core& core, TxEngine& tx)
      : core_(core), tx_(tx), single_(core), direct_(core), pull_(core, tx) {}

  /// Fetch and send posted messages, as far as letters and room allow.
  void run(Pair& pair);
  [[nodiscard]] TxSingle& single() { return single_; }
  /// Process answers to messages; those to plain messages in runs.
  void on_acks(Pair& pair, Flow& flow, const InFrame& frame);
  void on_pulled(Pair& pair, Flow& flow, const InFrame& frame) {
    pull_.on_pulled(pair, flow, frame);
  }

 private:
  /// Send a run of plain messages of one segment to the last destination, through the ring between
  /// two cards. The reader sees it after FrameWriter::publish(). @param count posted entries.
  /// @return messages sent; 0: use another path for the first one.
  [[nodiscard]] uint32_t send_run(Pair& pair, Ring& ring, uint32_t count);

  Core& core_;
  TxEngine& tx_;
  TxSingle single_;
  Direct direct_;
  TxPull pull_;
};

}  // namespace rio::model
