/// @file
/// Sends runs of messages to another process, each as one frame: of long messages it carries only
/// the addresses, of shorter ones the bytes; see rx_pull.hpp.
#pragma once

#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class TxPull final : public RunWay {
 public:
  TxPull(Core& core, TxEngine& tx) : core_(core), tx_(tx) { tx.use(this); }

  /// Launch a run of long messages to one mailbox, or add to the one in flight, if the partner can
  /// pull them or takes their bytes. @param count posted entries. @return messages launched; 0: use
  /// another path for the first one.
  [[nodiscard]] uint32_t launch(Pair& pair, Ring& ring, uint32_t count);
  /// Launch a run of messages of several segments to one mailbox whose bytes the frame carries, so
  /// that they need not wait for each other's answers. @param count, @return as launch().
  [[nodiscard]] uint32_t launch_with_bytes(Pair& pair, Ring& ring, uint32_t count);
  /// Process the answer to a run.
  void on_pulled(Flow& flow, const InFrame& frame);

  [[nodiscard]] bool send(Flow& flow, TxMsg& msg) override;
  void end(Flow& flow, const TxMsg& msg, regs::Status status) override;
  void revoke(const Flow& flow, TxMsg& msg) override;

 private:
  [[nodiscard]] static PullRun& run_at(Flow& flow, uint32_t place);
  /// @param bytes_max of all messages. @param length_min of each.
  [[nodiscard]] uint32_t collect(const Ring& ring, const regs::TxDesc& first, uint32_t count,
                                 uint32_t bytes_max, uint32_t length_min, PullRun& run);
  [[nodiscard]] uint32_t append(Pair& pair, Ring& ring, Flow& flow, const regs::TxDesc& desc,
                                uint32_t count);
  void hold_mailbox(Flow& flow, const PullRun& run);
  [[nodiscard]] const uint8_t* bytes_of(const PullRun& run, uint64_t addr, uint32_t length);
  static void take(Pair& pair, Ring& ring, uint32_t found);
  [[nodiscard]] uint32_t begin(Flow& flow, uint32_t place, const regs::TxDesc& first, Ring& ring,
                               uint32_t count);
  [[nodiscard]] bool all_mapped(const Flow& flow, const PullRun& run, uint32_t count);
  [[nodiscard]] bool fill(const PullRun& run, uint32_t count, bool behind, uint8_t* payload);
  /// Complete the next messages of a run.
  void complete(Flow& flow, const TxMsg& msg, uint32_t count, regs::Status status);

  Core& core_;
  TxEngine& tx_;
};

}  // namespace rio::model
