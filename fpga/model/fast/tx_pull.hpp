/// @file
/// Sends long messages to another process: a frame carries only their addresses, for a run of
/// messages; see rx_pull.hpp.
#pragma once

#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class TxPull {
 public:
  TxPull(Core& core, TxEngine& tx)
      : core_(core), tx_(tx), tx_unaligned_((1ull << core.config.tx_addr_log2) - 1) {}

  /// Launch a run of long messages to one mailbox, if the partner can pull them or takes their
  /// bytes. @param count posted entries. @return messages launched; 0: use another path for the
  /// first one.
  [[nodiscard]] uint32_t launch(Pair& pair, Ring& ring, uint32_t count);
  /// Send the rest of a run. @return false: no room on the wire.
  [[nodiscard]] bool send(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place);
  /// Process the answer to a run.
  void on_pulled(const InFrame& frame);
  /// Complete the next messages of a run.
  void complete(Pair& pair, const TxMsg& msg, PullRun& run, uint32_t count, regs::Status status);
  /// The memory of a run goes back to the host: the partner must not use it from now on.
  static void revoke(const Flow& flow, TxMsg& msg);

 private:
  [[nodiscard]] uint32_t collect(const Ring& ring, uint32_t count, PullRun& run);
  [[nodiscard]] bool fill(const PullRun& run, uint32_t count, bool behind, uint8_t* payload);
  void stopped_at(Pair& pair, Flow& flow, TxMsg& msg, const InFrame& frame);

  Core& core_;
  TxEngine& tx_;
  const uint64_t tx_unaligned_;  // address bits that must be 0
};

}  // namespace rio::model
