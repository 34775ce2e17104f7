#include "fpga/model/core/responder.hpp"

namespace rio::model {

/// Answers to the sender of `request` follow. `out_` is its ring in each case, as ready_for_one()
/// expects.
void Responder::turn_to(const InFrame& request) {
  close();
  source_ = request.dest;
  dest_ = request.source;
  out_ = core_.wire->route(request.source);
}

bool Responder::open(const InFrame& request) {
  turn_to(request);
  if (out_ != nullptr && !out_->responses->fits(frame_bytes(sizeof(acks_)))) {
    return false;
  }
  open_ = true;
  return true;
}

void Responder::close() {
  if (count_ != 0 && out_ != nullptr) {
    send_acks();
  }
  count_ = 0;
  open_ = false;
}

void Responder::send_acks() {
  if (count_ == 1 && out_->responses->send_short(
                         ack_head(), reinterpret_cast<const uint8_t*>(acks_), sizeof(Ack))) {
    return;
  }
  const auto length = static_cast<uint32_t>(count_ * sizeof(Ack));
  Frame* frame = out_->responses->reserve(frame_bytes(length));
  if (frame == nullptr) {
    return;  // the reader took room back that it had given: drop its answers
  }
  frame->begin(FrameType::kAcks, source_, dest_);
  frame->length = static_cast<uint16_t>(length);
  std::memcpy(frame->payload(), acks_, length);
  out_->responses->commit(frame, frame_bytes(length));
  mark_dirty(out_);
}

void Responder::mark_dirty(Outbound* out) {
  if (dirty_ != nullptr && dirty_ != out) {
    dirty_->responses->publish();
  }
  dirty_ = out;
}

Frame* Responder::begin(const InFrame& request, FrameType type, uint32_t payload_bytes) {
  turn_to(request);
  if (out_ != nullptr && out_->responses->reserve(frame_bytes(payload_bytes)) == nullptr) {
    return nullptr;
  }
  auto* const frame = reinterpret_cast<Frame*>(staged_);
  frame->begin(type, request.dest, request.source);
  frame->tid = request.tid;
  frame->length = static_cast<uint16_t>(payload_bytes);
  return frame;
}

void Responder::send(Frame* frame, const uint8_t* payload) {
  if (out_ == nullptr || core_.faults.draw(Fault::kLostResponse)) {
    return;
  }
  // At once: the receiver may copy a long payload while this card works on.
  out_->responses->send_reserved(head_of(*frame), payload, frame->length);
  if (dirty_ == out_) {
    dirty_ = nullptr;  // that has published the rest, too
  }
}

void Responder::flush() {
  close();
  if (dirty_ != nullptr) {
    dirty_->responses->publish();
    dirty_ = nullptr;
  }
  if (taken_from_ != nullptr) {
    taken_from_->release();
    taken_from_ = nullptr;
  }
}

}  // namespace rio::model
