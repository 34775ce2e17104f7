/// @file
/// Sends long messages to another process: a frame carries only their addresses, for a run of
/// messages; see rx_pull.hpp.
#pragma once

#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class TxPull final : public RunWay {
 public:
  TxPull(Core& core, TxEngine& tx) : core_(core), tx_(tx) { tx.use(this); }

  /// Launch a run of long messages to one mailbox, if the partner can pull them or takes their
  /// bytes. @param count posted entries. @return messages launched; 0: use another path for the
  /// first one.
  [[nodiscard]] uint32_t launch(Pair& pair, Ring& ring, uint32_t count);
  /// Process the answer to a run.
  void on_pulled(Flow& flow, const InFrame& frame);

  [[nodiscard]] bool send(Flow& flow, TxMsg& msg) override;
  void end(Flow& flow, const TxMsg& msg, regs::Status status) override;
  void revoke(const Flow& flow, TxMsg& msg) override;

 private:
  [[nodiscard]] uint32_t collect(const Ring& ring, const regs::TxDesc& first, uint32_t count,
                                 PullRun& run);
  [[nodiscard]] bool fill(const PullRun& run, uint32_t count, bool behind, uint8_t* payload);
  /// Complete the next messages of a run.
  void complete(Flow& flow, const TxMsg& msg, uint32_t count, regs::Status status);

  Core& core_;
  TxEngine& tx_;
};

}  // namespace rio::model
