#include "fpga/model/card/dispatch.hpp"

#include "fpga/model/core/whole.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kFramesPerStep = 64;     // bounds the time of a step
constexpr uint32_t kAnswersPerStep = 1024;  // a partner could fill the ring as fast as it is read

/// Whether a frame's source is one of its sender's destIDs.
[[nodiscard]] inline bool bears_its_name(const Inbound& in, const Frame& frame) {
  return frame.source - in.first_source <= in.more_sources;
}

}  // namespace

void Dispatch::take_responses(Inbound& in) {
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

void Dispatch::take_requests(Inbound& in, const InFrame* frame) {
  FrameReader& reader = *in.requests;
  engines_.responder.prepare();
  for (uint32_t left = kFramesPerStep; frame != nullptr && left > 0; --left) {
    const uint32_t taken = take(in, *frame);
    if (taken == 0) {
      break;  // the frame stays in the ring
    }
    reader.pop_bytes(taken);
    frame = reader.peek();
  }
  if (engines_.rx_pull.pulling()) {
    engines_.rx_pull.end_runs(in.puller);
  }
  // Publish answers before releasing the ring: a sender that sees its request taken must find the
  // answer.
  if (engines_.responder.pending()) {
    engines_.responder.flush();
  }
  reader.release();
}

inline uint32_t Dispatch::take(Inbound& in, const InFrame& frame) {
  if (!bears_its_name(in, frame)) [[unlikely]] {
    return frame.bytes;
  }
  RxPull& pull = engines_.rx_pull;
  if (pull.pulling() && pull.ends_runs(frame)) [[unlikely]] {
    return 0;
  }
  if (frame.type == FrameType::kPull && core_.link_up) [[unlikely]] {
    // If it is not taken now, the host sees earlier arrivals before the next pull.
    return pull.on_pull(in.puller, frame) ? frame.bytes : 0;
  }
  const uint32_t taken = engines_.rx_express.take(frame, in.requests->to_end(), in.requests->tag());
  if (taken > 0) {
    return taken;
  }
  return on_request(frame) ? frame.bytes : 0;
}

bool Dispatch::on_request(const InFrame& frame) {
  if (frame.type == FrameType::kMessage && core_.link_up && whole(frame)) [[likely]] {
    return engines_.rx_whole.on_message(frame);
  }
  if (!core_.link_up || !whole(frame)) {
    return true;  // a fault: lost on the way
  }
  switch (frame.type) {
    case FrameType::kSegment:
      return engines_.rx.on_segment(frame);
    case FrameType::kDoorbell:
      return engines_.doorbells.on_request(frame);
    case FrameType::kRequest:
      return engines_.target.on_request(frame);
    case FrameType::kMaintRequest:
      return engines_.maint.on_request(frame);
    case FrameType::kPortWrite:
      engines_.maint.on_port_write(frame);
      return true;
    default:
      return true;
  }
}

void Dispatch::on_response(const InFrame& frame) {
  if (!whole(frame)) {
    return;
  }
  if (frame.type == FrameType::kAcks) [[likely]] {
    if (core_.exact) {
      engines_.tx.on_acks(frame);
    } else {
      engines_.fast_tx.on_acks(frame);
    }
    return;
  }
  if (frame.type == FrameType::kPulled) {
    engines_.fast_tx.on_pulled(frame);
    return;
  }
  Pair* pair = core_.sender(frame.dest);
  Flow* flow = pair == nullptr ? nullptr : core_.known_flow(*pair, frame.source);
  Transaction* transaction =
      flow == nullptr ? nullptr : engines_.transactions.answered(*flow, frame);
  if (transaction == nullptr) {
    return;
  }
  switch (transaction->kind) {
    case Transaction::kDoorbell:
      engines_.doorbells.on_answer(*pair, *flow, *transaction, static_cast<Answer>(frame.op));
      break;
    case Transaction::kDma:
      engines_.dma.on_response(*pair, *flow, *transaction, frame);
      break;
    default:
      engines_.maint.on_response(*pair, *flow, *transaction, frame);
  }
}

}  // namespace rio::model
