#include "fpga/model/card/engines.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kFramesPerStep = 64;     // bounds the time of a step
constexpr uint32_t kLargeBytes = 1024;      // of a frame whose room is given back at once
constexpr uint32_t kAcksPerLook = 2;        // one a message, and one that was missed before
constexpr uint32_t kAnswersPerStep = 1024;  // a partner could fill the ring as fast as it is read

/// Whether a frame's source is one of its sender's destIDs.
[[nodiscard]] inline bool bears_its_name(const Inbound& in, const Frame& frame) {
  return frame.source - in.first_source <= in.more_sources;
}

}  // namespace

void Engines::take_responses(Inbound& in, bool pulls) {
  FrameReader& reader = *in.responses;
  const InFrame* frame = reader.peek();
  for (uint32_t left = kAnswersPerStep; frame != nullptr && left > 0; --left) {
    if (!pulls && frame->type == FrameType::kReadable) [[unlikely]] {
      break;
    }
    if (bears_its_name(in, *frame)) [[likely]] {
      on_response(in, *frame);
    }
    const bool is_large = frame->bytes >= kLargeBytes;
    reader.pop(frame);
    if (is_large && !dma_pull.pulling()) {
      reader.release();  // the partner fills the room while this card works on
    }
    frame = dma_pull.is_full() ? nullptr : reader.peek();
  }
  if (dma_pull.has_turn()) [[unlikely]] {
    dma_pull.end_turn(in.puller);
  }
  reader.release();
}

void Engines::take_acks(const Inbound& in) {
  FrameReader& reader = *in.responses;
  uint32_t left = kAcksPerLook;
  const InFrame* frame = reader.peek();
  while (left > 0 && frame != nullptr && frame->type == FrameType::kAcks) {
    if (bears_its_name(in, *frame)) [[likely]] {
      on_response(in, *frame);
    }
    reader.pop(frame);
    frame = --left > 0 ? reader.peek() : nullptr;
  }
  if (left != kAcksPerLook) {
    reader.release();
  }
}

void Engines::take_requests(Inbound& in, const InFrame* frame, bool pulls) {
  FrameReader& reader = *in.requests;
  responder.prepare();
  bool is_host_told = false;
  for (uint32_t left = kFramesPerStep; frame != nullptr && left > 0; --left) {
    const uint32_t taken = take(in, *frame);
    if (taken == 0) {
      break;  // the frame stays in the ring
    }
    is_host_told = is_host_told || frame->type != FrameType::kPull;
    reader.pop_bytes(taken);
    if (taken >= kLargeBytes && frame->type == FrameType::kRequest && !reader.holds())
        [[unlikely]] {
      end_large(reader);
    }
    frame = reader.peek();
  }
  if (dma_pull.has_turn()) [[unlikely]] {
    dma_pull.end_turn(in.puller);
  }
  if (pulls && reader.holds()) {
    // A card copies while its host goes on; here the host waits for the copy. So it first sees what
    // has arrived, which may let it send.
    if (is_host_told && may_put_off_) {
      puts_off_ = true;
    } else {
      rx_pull.pull(in, reader);
    }
  }
  // Publish answers before releasing the ring: a sender that sees its request taken must find the
  // answer.
  if (responder.pending()) {
    responder.flush();
  }
  reader.release_unheld();
}

bool Engines::take_notice(const Inbound& in) {
  FrameReader& reader = *in.requests;
  const InFrame* const frame = reader.peek();
  if (frame == nullptr || !core.link_up || !bears_its_name(in, *frame) || !whole(*frame)) {
    return false;
  }
  const bool is_taken = frame->type == FrameType::kPledge
                            ? barriers.on_pledge(*frame)
                            : barriers.claims(*frame) && barriers.on_notice(*frame);
  if (!is_taken) {
    return false;
  }
  reader.pop(frame);
  responder.flush();  // first, as in take_requests()
  reader.release();
  barriers.note_chores();
  return true;
}

bool Engines::take_stream(const Inbound& in) {
  FrameReader& reader = *in.requests;
  const InFrame* frame = reader.peek();
  bool is_plain = frame != nullptr;
  responder.prepare();
  for (uint32_t left = kFramesPerStep; frame != nullptr && left > 0; --left) {
    const uint32_t taken =
        bears_its_name(in, *frame) ? rx_plain.take_run(*frame, reader.to_end(), reader.tag()) : 0;
    if (taken == 0) {
      is_plain = false;
      break;
    }
    reader.pop_bytes(taken);
    frame = reader.peek();
  }
  responder.flush();  // first, as in take_requests()
  reader.release();
  return is_plain;
}

/// Give the room of a long write back, so that its sender fills it while this card works on.
void Engines::end_large(FrameReader& reader) {
  responder.flush();  // first, as in take_requests()
  reader.release();
}

inline uint32_t Engines::take(Inbound& in, const InFrame& frame) {
  if (!bears_its_name(in, frame)) [[unlikely]] {
    return frame.bytes;
  }
  if (in.requests->holds() && rx_pull.ends_runs(*in.requests, frame)) [[unlikely]] {
    return 0;
  }
  if (frame.type == FrameType::kLongRequest && core.link_up) [[unlikely]] {
    return dma_pull.on_request(in.puller, frame, rail.claims_long(frame)) ? frame.bytes : 0;
  }
  if (dma_pull.pulling()) [[unlikely]] {
    dma_pull.end_pulls(in.puller);  // the frame comes after them
  }
  if (frame.type == FrameType::kPull && core.link_up) [[unlikely]] {
    if ((frame.op == kBytesBehind || frame.op == kBytesMapped) && !in.requests->holds()) {
      return rx_pull.take_with_bytes(in.windows, frame) ? frame.bytes : 0;
    }
    return in.requests->hold(frame) ? frame.bytes : 0;
  }
  if (frame.type == FrameType::kMapped && core.link_up) {
    return rx_several.take_mapped(frame, in.windows) ? frame.bytes : 0;
  }
  if (frame.segments > 1 && rx_several.take(frame)) {
    return frame.bytes;
  }
  const uint32_t taken = rx_plain.take_run(frame, in.requests->to_end(), in.requests->tag());
  if (taken > 0) {
    return taken;
  }
  return on_request(frame) ? frame.bytes : 0;
}

bool Engines::on_request(const InFrame& frame) {
  if (frame.type == FrameType::kPledge) {
    return barriers.on_pledge(frame);
  }
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

void Engines::on_response(const Inbound& in, const InFrame& frame) {
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
  if (frame.type == FrameType::kPledgeAnswer) {
    barriers.on_pledge_answer(*flow, frame);
    return;
  }
  Transaction* const transaction = transactions.answered(*flow, frame);
  if (transaction == nullptr) {
    return;
  }
  if (transaction->pulled) [[unlikely]] {
    dma_pull.on_response(in.puller, *flow, *transaction, frame);
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
