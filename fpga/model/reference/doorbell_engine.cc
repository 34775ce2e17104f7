#include "fpga/model/reference/doorbell_engine.hpp"

namespace rio::model {

using regs::Status;

bool DoorbellEngine::start(Pair& pair, Ring& ring, Flow& flow, const regs::TxDesc& desc) {
  Transaction* doorbell = transactions_.start(flow);
  if (doorbell == nullptr) {
    return false;
  }
  doorbell->ring = kTxRing;
  doorbell->owner = ring.head;
  doorbell->cookie = desc.cookie;
  doorbell->address = desc.addr & 0xFFFF;
  ++ring.outstanding;
  ++ring.head;
  transactions_.send(pair, flow, *doorbell);
  return true;
}

void DoorbellEngine::on_end(Pair& pair, const Transaction& doorbell, Status status) {
  Ring& ring = pair.rings[kTxRing];
  core_.complete_tx(ring, doorbell.cookie, doorbell.owner, status, doorbell.retries);
  --ring.outstanding;
}

bool DoorbellEngine::on_request(const InFrame& frame) {
  Frame* response = responder_.begin(frame, FrameType::kResponse, 0);
  if (response == nullptr) {
    return false;
  }
  ++core_.counts.rx_packets;
  const Answer answer = take(frame);
  core_.count_answer(answer);
  response->op = static_cast<uint8_t>(answer);
  responder_.send(response);
  return true;
}

Answer DoorbellEngine::take(const InFrame& frame) {
  const Owner* owner = core_.owner(frame.dest);
  if (owner == nullptr || owner->pair_of_doorbells == kNoPair) {
    ++core_.counts.rx_unmapped;
    return Answer::kError;
  }
  if (core_.faults.draw(Fault::kError)) {
    return Answer::kError;
  }
  Pair& pair = core_.pairs[owner->pair_of_doorbells];
  Ring& ring = pair.rings[kDoorbellRing];
  if (!ring.running()) {
    return Answer::kError;
  }
  if (core_.poll_tail(pair, kDoorbellRing) == 0 || core_.faults.draw(Fault::kRetry)) {
    return Answer::kRetry;
  }
  regs::DoorbellCpl cpl{frame.source, frame.dest, core_.ticks(), 0};
  core_.complete(ring, &cpl, static_cast<uint32_t>(frame.address & 0xFFFF));
  ++ring.head;
  return Answer::kDone;
}

}  // namespace rio::model
