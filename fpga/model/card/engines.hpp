/// @file
/// The engines of a card, which share one Core; each arrived frame is passed to its engine.
#pragma once

#include <utility>

#include "fpga/model/card/rail_block.hpp"
#include "fpga/model/core/barrier_rings.hpp"
#include "fpga/model/core/core.hpp"
#include "fpga/model/core/dma_engine.hpp"
#include "fpga/model/core/maint_engine.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/target_engine.hpp"
#include "fpga/model/core/transactions.hpp"
#include "fpga/model/fast/dma_pull.hpp"
#include "fpga/model/fast/fast_tx.hpp"
#include "fpga/model/fast/rx_plain.hpp"
#include "fpga/model/fast/rx_pull.hpp"
#include "fpga/model/fast/rx_several.hpp"
#include "fpga/model/reference/rx_engine.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

struct Engines {
  explicit Engines(Core& shared) : core(shared) {}

  /// Take a partner's answers. Bounded. @param pulls whether to pull the bytes of long reads, which
  /// takes long. Else those answers stay in the ring, and the ones behind them.
  void take_responses(Inbound& in, bool pulls);
  /// Take a partner's answers to messages up to another answer. Bounded. Only in fast mode.
  void take_acks(const Inbound& in);
  /// Called before take_requests() in each step that pulls.
  void begin_pulls() { may_put_off_ = !std::exchange(puts_off_, false); }
  /// Take a partner's requests and messages, and answer them. Bounded. @param frame the first one,
  /// or null. @param pulls whether to pull long messages, which takes long. Behind other frames
  /// they wait for the next step.
  void take_requests(Inbound& in, const InFrame* frame, bool pulls);
  // Looks take frames by these. They have flushed the responder before.
  /// Take and answer a barrier notification that has just arrived. Only in fast mode.
  /// @return false: the next frame is none, or must wait; nothing was done.
  [[nodiscard]] bool take_notice(const Inbound& in);
  /// Hot. Take the messages of a stream that are there, and answer them. Bounded. Only while looks
  /// are allowed. @return false: the next frame is no plain message; make a step.
  [[nodiscard]] bool take_stream(const Inbound& in);
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
  RxSeveral rx_several{core, responder, rx};
  RxPull rx_pull{core, responder, admission, rx, rx_several};
  DmaPull dma_pull{core, transactions, responder, dma, target};
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
  [[gnu::noinline]] void end_large(FrameReader& reader);
  void on_response(const Inbound& in, const InFrame& frame);

  bool puts_off_ = false;     // this step leaves held runs to the next one
  bool may_put_off_ = false;  // the last step did not
};

}  // namespace rio::model
