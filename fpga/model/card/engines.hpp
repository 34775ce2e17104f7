/// @file
/// The engines of a card, which share one Core; each arrived frame is passed to its engine.
#pragma once

#include "fpga/model/card/rail_block.hpp"
#include "fpga/model/core/barrier_rings.hpp"
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
  explicit Engines(Core& shared) : core(shared) {}

  /// Take a partner's answers. Bounded.
  void take_responses(Inbound& in);
  /// Take a partner's requests and messages, and answer them. Bounded. @param frame the first one.
  void take_requests(Inbound& in, const InFrame* frame);
  /// Tell the engine of a transaction that it has ended.
  void end(const Flow& flow, const Transaction& transaction, regs::Status status);

  Core& core;
  Transactions transactions{core};
  Responder responder{core};
  DmaEngine dma{core, transactions};
  TargetEngine target{core, responder};
  MaintEngine maint{core, transactions, responder};
  BarrierRings barriers{core, transactions, responder};
  // Messages segment by segment.
  TxEngine tx{core, transactions};
  Admission admission{core};
  RxEngine rx{core, responder, admission};
  // Fast paths.
  FastTx fast_tx{core, tx};
  RxPlain rx_plain{core, responder};
  RxPull rx_pull{core, responder, admission, rx};
  RailBlock rail{core, dma, tx, rx, responder};

 private:
  /// Take one frame, or a run of frames. @return bytes taken; 0: nothing more can be taken now.
  [[nodiscard]] uint32_t take(Inbound& in, const InFrame& frame);
  /// Handle one frame. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_request(const InFrame& frame);
  /// Handle a doorbell while a barrier ring runs. Out of line, so that on_request() saves no
  /// registers for it.
  [[nodiscard]] [[gnu::noinline]] bool on_doorbell(const InFrame& frame);
  /// Handle a request that touches the bytes of the rail status. Out of line, as on_doorbell().
  [[nodiscard]] [[gnu::noinline]] bool on_rail_request(const InFrame& frame);
  void on_response(const InFrame& frame);
};

}  // namespace rio::model
