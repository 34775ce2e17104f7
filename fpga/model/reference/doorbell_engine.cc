// Doorbells of the transmit ring: transactions, not messages.
#include <algorithm>

#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

using regs::Status;
using Control = regs::tx_desc::Control;

bool TxEngine::launch_doorbell(Pair& pair, Ring& ring, const regs::TxDesc& desc) {
  Flow* flow = core_.flow(pair, desc.dest_id);
  if (flow == nullptr || Control::wide.get(desc.control) != 0) {
    finish_unsent(pair, ring, desc, flow == nullptr ? Status::kLinkDown : Status::kBadDescriptor);
    return true;
  }
  Transaction* doorbell = transactions_.start(*flow);
  if (doorbell == nullptr) {
    return false;
  }
  doorbell->kind = Transaction::kDoorbell;
  doorbell->owner = ring.head;
  doorbell->cookie = desc.cookie;
  doorbell->address = desc.addr & 0xFFFF;
  ++pair.tx_outstanding;
  ++ring.head;
  transactions_.send(pair, *flow, *doorbell);
  return true;
}

void TxEngine::on_doorbell_answer(Pair& pair, Flow& flow, Transaction& doorbell, Answer answer) {
  if (answer == Answer::kRetry && pair.rings[kTxRing].running() &&
      transactions_.again(pair, flow, doorbell)) {
    return;
  }
  finish_doorbell(pair, doorbell,
                  answer == Answer::kDone    ? Status::kOk
                  : answer == Answer::kRetry ? Status::kRetryExpired
                                             : Status::kErrorResponse);
  transactions_.end(flow, doorbell);
}

void TxEngine::on_doorbell_expired(Pair& pair, const Transaction& doorbell, Status status) {
  finish_doorbell(pair, doorbell, status);
}

void TxEngine::finish_doorbell(Pair& pair, const Transaction& doorbell, Status status) {
  regs::TxCpl cpl{doorbell.cookie, doorbell.owner, core_.ticks(), 0};
  core_.complete(pair.rings[kTxRing], &cpl,
                 static_cast<uint32_t>(status) | std::min(255u, doorbell.retries) << 8);
  --pair.tx_outstanding;
}

}  // namespace rio::model
