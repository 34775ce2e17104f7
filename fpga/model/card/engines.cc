#include "fpga/model/card/engines.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kFramesPerStep = 64;     // bounds the time of a step
constexpr uint32_t kAnswersPerStep = 1024;  // a partner could fill the ring as fast as it is read

/// Whether a frame's source is one of its sender's destIDs.
[[nodiscard]] inline bool bears_its_name(const Inbound& in, const Frame& frame) {
  return frame.source - in.first_source <= in.more_sources;
}

}  // namespace

void Engines::take_responses(Inbound& in) {
  FrameReader& reader = *in.responses;
  const InFrame* frame = reader.peek();
  for (uint32_t left = kAnswersPerStep; frame != nullptr && left > 0; --left) {
    if (bears_its_name(in, *frame)) [[likely]] {
      on_response(*frame);
    }
    reader.pop(frame);
    frame = reader.peek();
  }
  reader.release();
}

void Engines::take_requests(Inbound& in, const InFrame* frame) {
  FrameReader& reader = *in.requests;
  responder.prepare();
  for (uint32_t left = kFramesPerStep; frame != nullptr && left > 0; --left) {
    const uint32_t taken = take(in, *frame);
    if (taken == 0) {
      break;  // the frame stays in the ring
    }
    reader.pop_bytes(taken);
    frame = reader.peek();
  }
  if (rx_pull.pulling()) {
    rx_pull.end_runs(in.puller);
  }
  // Publish answers before releasing the ring: a sender that sees its request taken must find the
  // answer.
  if (responder.pending()) {
    responder.flush();
  }
  reader.release();
}

inline uint32_t Engines::take(Inbound& in, const InFrame& frame) {
  if (!bears_its_name(in, frame)) [[unlikely]] {
    return frame.bytes;
  }
  RxPull& pull = rx_pull;
  if (pull.pulling() && pull.ends_runs(frame)) [[unlikely]] {
    return 0;
  }
  if (frame.type == FrameType::kPull && core.link_up) [[unlikely]] {
    // If it is not taken now, the host sees earlier arrivals before the next pull.
    return pull.on_pull(in.puller, frame) ? frame.bytes : 0;
  }
  const uint32_t taken = rx_plain.take_run(frame, in.requests->to_end(), in.requests->tag());
  if (taken > 0) {
    return taken;
  }
  return on_request(frame) ? frame.bytes : 0;
}

bool Engines::on_request(const InFrame& frame) {
  if (!core.link_up || !whole(frame)) {
    return true;  // a fault: lost on the way
  }
  switch (frame.type) {
    case FrameType::kMessage:
    case FrameType::kSegment:
      return rx.on_message(frame);
    case FrameType::kDoorbell:
      return (core.chores & kBarrierRingChore) != 0 ? on_doorbell(frame) : rx.on_doorbell(frame);
    case FrameType::kRequest:
      return rail.claims(frame) ? on_rail_request(frame) : target.on_request(frame);
    case FrameType::kMaintRequest:
      return maint.on_request(frame);
    case FrameType::kPortWrite:
      maint.on_port_write(frame);
      return true;
    default:
      return true;
  }
}

bool Engines::on_doorbell(const InFrame& frame) {
  return barriers.claims(frame) ? barriers.on_notice(frame) : rx.on_doorbell(frame);
}

bool Engines::on_rail_request(const InFrame& frame) {
  return rail.answers(frame) ? rail.on_read(frame) : target.refuse(frame);
}

void Engines::on_response(const InFrame& frame) {
  if (!whole(frame)) {
    return;
  }
  Pair* const pair = core.sender(frame.dest);
  Flow* const flow = pair == nullptr ? nullptr : core.known_flow(*pair, frame.source);
  if (flow == nullptr) {
    return;
  }
  if (frame.type == FrameType::kAcks) [[likely]] {
    if (core.exact) {
      tx.on_acks(*flow, frame);
    } else {
      fast_tx.on_acks(*flow, frame);
    }
    return;
  }
  if (frame.type == FrameType::kPulled) {
    fast_tx.on_pulled(*flow, frame);
    return;
  }
  Transaction* const transaction = transactions.answered(*flow, frame);
  if (transaction == nullptr) {
    return;
  }
  const auto status = transactions.conclude(*flow, *transaction, frame);
  if (status.has_value()) {
    end(*flow, *transaction, *status);
    transactions.end(*flow, *transaction);
  }
}

void Engines::end(const Flow& flow, const Transaction& transaction, regs::Status status) {
  if (transaction.ring == kTxRing) {
    tx.on_end(flow.pair.rings[kTxRing], transaction, status);
    return;
  }
  switch (transaction.ring) {
    case kDmaRing:
      dma.on_end(transaction, status);
      break;
    case kBarrierRing:
      barriers.on_end(flow, transaction, status);
      break;
    default:
      maint.on_end(transaction, status);
  }
}

}  // namespace rio::model
