#include "fpga/model/core/responder.hpp"

namespace rio::model {

bool Responder::open(const InFrame& request) {
  close();
  out_ = core_.wire->route(request.source);
  if (out_ != nullptr && !out_->responses->fits(frame_bytes(sizeof(acks_)))) {
    return false;
  }
  source_ = request.dest;
  dest_ = request.source;
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
  close();
  out_ = core_.wire->route(request.source);
  Frame* frame = reinterpret_cast<Frame*>(sink_);
  if (out_ != nullptr) {
    frame = out_->responses->reserve(frame_bytes(payload_bytes));
    if (frame == nullptr) {
      return nullptr;
    }
  }
  frame->begin(type, request.dest, request.source);
  frame->tid = request.tid;
  frame->length = static_cast<uint16_t>(payload_bytes);
  return frame;
}

void Responder::send(Frame* frame) {
  if (out_ == nullptr || core_.faults.draw(Fault::kLostResponse)) {
    return;
  }
  out_->responses->commit(frame, frame_bytes(frame->length));
  mark_dirty(out_);
}

void Responder::flush() {
  close();
  if (dirty_ != nullptr) {
    dirty_->responses->publish();
    dirty_ = nullptr;
  }
}

}  // namespace rio::model
