/// @file
/// The engines of a card, which share one Core; each arrived frame is passed to its engine.
#pragma once

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/dma_engine.hpp"
#include "fpga/model/core/maint_engine.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/target_engine.hpp"
#include "fpga/model/core/transactions.hpp"
#include "fpga/model/fast/fast_tx.hpp"
#include "fpga/model/fast/rx_plain.hpp"
#include "fpga/model/fast/rx_pull.hpp"
#include "fpga/model/reference/rx_engine.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

struct Engines {
  explicit Engines(Core& shared)
      : core(shared),
        transactions(core),
        responder(core),
        dma(core, transactions),
        target(core, responder),
        maint(core, transactions, responder),
        tx(core, transactions),
        admission(core),
        rx(core, responder, admission),
        fast_tx(core, tx),
        rx_plain(core, responder),
        rx_pull(core, responder, admission, rx) {}

  /// Take a partner's answers. Bounded.
  void take_responses(Inbound& in);
  /// Take a partner's requests and messages, and answer them. Bounded. @param frame the first one.
  void take_requests(Inbound& in, const InFrame* frame);
  /// Tell the engine of a transaction that it has ended.
  void end(Pair& pair, const Transaction& transaction, regs::Status status);

  Core& core;
  Transactions transactions;
  Responder responder;
  DmaEngine dma;
  TargetEngine target;
  MaintEngine maint;
  // Messages segment by segment.
  TxEngine tx;
  Admission admission;
  RxEngine rx;
  // Fast paths.
  FastTx fast_tx;
  RxPlain rx_plain;
  RxPull rx_pull;

 private:
  /// Take one frame, or a run of frames. @return bytes taken; 0: nothing more can be taken now.
  [[nodiscard]] uint32_t take(Inbound& in, const InFrame& frame);
  /// Handle one frame. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_request(const InFrame& frame);
  void on_response(const InFrame& frame);
};

}  // namespace rio::model
