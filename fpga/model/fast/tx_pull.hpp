/// @file
/// Long messages between processes: only where they are is sent, a run at a time; see rx_pull.hpp.
#pragma once

#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class TxPull {
 public:
  TxPull(Core& core, TxEngine& tx)
      : core_(core), tx_(tx), tx_unaligned_((1ull << core.config.tx_addr_log2) - 1) {}

  /// Launch a run of long messages to one mailbox, if the partner pulls, or takes their bytes.
  /// @param count posted entries. @return how many; 0: another way has to look at the first.
  [[nodiscard]] uint32_t launch(Pair& pair, Ring& ring, uint32_t count);
  /// Send what is left of a run. @return false: no room on the wire.
  [[nodiscard]] bool send(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place);
  /// The answer to a run.
  void on_pulled(const InFrame& frame);
  /// Complete the next messages of a run.
  void complete(Pair& pair, const TxMsg& msg, PullRun& run, uint32_t count, regs::Status status);
  /// The memory of its messages returns to the host: no partner may read it from now on.
  static void revoke(const Flow& flow, TxMsg& msg);

 private:
  [[nodiscard]] uint32_t collect(const Ring& ring, uint32_t count, PullRun& run);
  [[nodiscard]] bool fill(const PullRun& run, uint32_t count, bool behind, uint8_t* payload);
  void stopped_at(Pair& pair, Flow& flow, TxMsg& msg, const InFrame& frame);

  Core& core_;
  TxEngine& tx_;
  const uint64_t tx_unaligned_;  // bits that are 0 in an address
};

}  // namespace rio::model
