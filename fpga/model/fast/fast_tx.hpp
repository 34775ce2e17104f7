/// @file
/// The transmit side in fast mode: chooses the fastest path that posted messages may take.
#pragma once

#include "fpga/model/fast/direct.hpp"
#include "fpga/model/fast/tx_express.hpp"
#include "fpga/model/fast/tx_pull.hpp"
#include "fpga/model/fast/tx_single.hpp"

namespace rio::model {

class FastTx final : public UnitWay {
 public:
  FastTx(Core& core, TxEngine& tx)
      : core_(core), tx_(tx), single_(core), direct_(core), express_(core, tx), pull_(core, tx) {
    tx.use(this);
  }

  /// Fetch and send posted messages, as far as letters and room allow.
  void run(Pair& pair);
  [[nodiscard]] TxSingle& single() { return single_; }
  void on_acks(const InFrame& frame) { express_.on_acks(frame); }
  void on_pulled(const InFrame& frame) { pull_.on_pulled(frame); }

  bool send(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place) override;
  void end_run(Pair& pair, Flow& flow, const TxMsg& msg, uint32_t place,
               regs::Status status) override;
  void revoke(const Flow& flow, TxMsg& msg) override { TxPull::revoke(flow, msg); }

 private:
  Core& core_;
  TxEngine& tx_;
  TxSingle single_;
  Direct direct_;
  TxExpress express_;
  TxPull pull_;
};

}  // namespace rio::model
