#include "fpga/model/fast/tx_single.hpp"

namespace rio::model {

bool TxSingle::aim(Pair& pair) {
  Flow* flow = pair.last_flow;
  const HostWindow& host = core_.host.read_window();
  if (flow == nullptr || flow->way->gone || host.len_bytes < regs::kSegmentBytesMax) {
    return false;
  }
  lane_ = {.ring = &pair.rings[kTxRing],
           .writer = flow->way->requests,
           .busy = flow->busy,
           .msgs = flow->msgs.data(),
           .decoder = {host, flow->dest_id, core_.config.tx_addr_log2},
           .route = plain::route(pair.dest_id, flow->dest_id),
           .now_ns = core_.now_ns};
  return true;
}

bool TxSingle::send(Pair& pair) {
  if (!aim(pair) || !lane_.writer->has_short_room(frame_bytes(regs::kSegmentBytesMax))) {
    return false;
  }
  const Kick kicked = single();
  if (kicked == Kick::kNot) {
    return false;
  }
  if (kicked == Kick::kSentToSleeper) {
    wake();
  }
  count(pair, 1);
  return true;
}

}  // namespace rio::model
