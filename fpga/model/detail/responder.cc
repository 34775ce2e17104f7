#include "fpga/model/detail/responder.hpp"

namespace rio::model {

bool Responder::open(const Frame& request) {
  close();
  Outbound* out = core_.wire->route(request.source);
  Frame* frame = reinterpret_cast<Frame*>(sink_);
  if (out != nullptr) {
    frame = out->responses->reserve(frame_bytes(kAcksPerFrame * sizeof(Ack)));
    if (frame == nullptr) {
      return false;
    }
  }
  to_sink_ = out == nullptr;
  out_ = out;
  open_ = frame;
  open_->type = FrameType::kAcks;
  open_->source = request.dest;
  open_->dest = request.source;
  count_ = 0;
  return true;
}

void Responder::close() {
  if (open_ != nullptr && count_ > 0 && !to_sink_) {
    open_->length = static_cast<uint16_t>(count_ * sizeof(Ack));
    out_->responses->commit(open_, frame_bytes(open_->length));
    if (dirty_ != nullptr && dirty_ != out_) {
      dirty_->responses->publish();
    }
    dirty_ = out_;
  }
  open_ = nullptr;
}

Frame* Responder::begin(const Frame& request, FrameType type, uint32_t payload_bytes) {
  close();
  Outbound* out = core_.wire->route(request.source);
  Frame* frame = reinterpret_cast<Frame*>(sink_);
  if (out != nullptr) {
    frame = out->responses->reserve(frame_bytes(payload_bytes));
    if (frame == nullptr) {
      return nullptr;
    }
  }
  out_ = out;
  to_sink_ = out == nullptr;
  frame->clear();
  frame->type = type;
  frame->source = request.dest;
  frame->dest = request.source;
  frame->tid = request.tid;
  frame->length = static_cast<uint16_t>(payload_bytes);
  return frame;
}

void Responder::send(Frame* frame) {
  if (to_sink_ || core_.faults.draw(Fault::kLostResponse)) {
    return;
  }
  out_->responses->commit(frame, frame_bytes(frame->length));
  if (dirty_ != nullptr && dirty_ != out_) {
    dirty_->responses->publish();
  }
  dirty_ = out_;
}

void Responder::flush() {
  close();
  if (dirty_ != nullptr) {
    dirty_->responses->publish();
    dirty_ = nullptr;
  }
}

}  // namespace rio::model
