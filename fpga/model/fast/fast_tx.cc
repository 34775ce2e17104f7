#include "fpga/model/fast/fast_tx.hpp"

#include "fpga/model/reference/tx_desc.hpp"

namespace rio::model {

void FastTx::run(Pair& pair) {
  Ring& ring = pair.rings[kTxRing];
  const uint32_t count = tx_.fetchable(pair);
  if (count == 0) {
    return;
  }
  const uint32_t end = ring.head + count;
  while (static_cast<int32_t>(end - ring.head) > 0) {
    const uint32_t left = end - ring.head;
    if (direct_.send(pair, ring, left) > 0 || (left == 1 && single_.send(pair)) ||
        express_.send(pair, ring, left) > 0 || pull_.launch(pair, ring, left) > 0) {
      continue;
    }
    if (!tx_.launch(pair, ring)) {
      break;
    }
  }
  if (pair.last_flow != nullptr) {
    pair.last_flow->way->requests->publish();
  }
}

bool FastTx::send(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place) {
  if (msg.segments == TxMsg::kRun) {
    return pull_.send(pair, flow, msg, place);
  }
  const uint32_t length = msg.desc.length;
  const uint32_t bytes = frame_bytes(padded(length));
  Frame* frame = flow.way->requests->reserve(bytes);
  if (frame == nullptr) {
    return false;
  }
  std::memset(frame->payload() + (length & ~7u), 0, padded(length) - (length & ~7u));
  if (!tx_.gather(msg, flow, place, 0, length, frame->payload())) {
    tx_.end_message(pair, flow, msg, place, regs::Status::kHostReadFailed);
    return true;
  }
  frame->clear();
  frame->type = FrameType::kMessage;
  frame->source = pair.dest_id;
  frame->dest = flow.dest_id;
  frame->length = static_cast<uint16_t>(length);
  frame->place = static_cast<uint8_t>(place);
  frame->segments = msg.segments;
  frame->ssize =
      static_cast<uint16_t>(ssize_bytes(regs::tx_desc::Control::ssize.get(msg.desc.control)));
  frame->address = msg.index | static_cast<uint64_t>(pair.rings[kTxRing].started_us) << 32;
  flow.way->requests->commit(frame, bytes);
  flow.way->requests->publish();
  ++core_.counts.tx_packets;
  msg.unsent = 0;
  msg.open = 1;
  msg.since_ns = core_.now_ns;
  return true;
}

void FastTx::end_run(Pair& pair, Flow& flow, const TxMsg& msg, uint32_t place,
                     regs::Status status) {
  PullRun& run = *flow.runs[place & 63];
  pull_.complete(pair, msg, run, run.count - run.done, status);
}

}  // namespace rio::model
