/// @file
/// The engines of a card, which share one Core.
#pragma once

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/dma_engine.hpp"
#include "fpga/model/core/maint_engine.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/target_engine.hpp"
#include "fpga/model/core/transactions.hpp"
#include "fpga/model/fast/fast_tx.hpp"
#include "fpga/model/fast/rx_express.hpp"
#include "fpga/model/fast/rx_pull.hpp"
#include "fpga/model/fast/rx_single.hpp"
#include "fpga/model/fast/rx_whole.hpp"
#include "fpga/model/reference/doorbell_engine.hpp"
#include "fpga/model/reference/rx_engine.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

struct Engines {
  explicit Engines(Core& core)
      : transactions(core),
        responder(core),
        dma(core, transactions),
        target(core, responder),
        maint(core, transactions, responder),
        doorbells(core, transactions, responder),
        tx(core, doorbells),
        admission(core),
        rx(core, responder, admission),
        fast_tx(core, tx),
        rx_single(core, responder),
        rx_express(core, responder),
        rx_whole(core, responder, admission, rx),
        rx_pull(core, responder, admission, rx_whole) {}

  Transactions transactions;
  Responder responder;
  DmaEngine dma;
  TargetEngine target;
  MaintEngine maint;
  // Messages segment by segment.
  DoorbellEngine doorbells;
  TxEngine tx;
  Admission admission;
  RxEngine rx;
  // Fast paths.
  FastTx fast_tx;
  RxSingle rx_single;
  RxExpress rx_express;
  RxWhole rx_whole;
  RxPull rx_pull;
};

}  // namespace rio::model
