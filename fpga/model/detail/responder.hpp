/// @file
/// Answers of a card. They have room before a request is looked at, so that none is ever lost.
#pragma once

#include "fpga/model/detail/core.hpp"

namespace rio::model {

class Responder {
 public:
  explicit Responder(Core& core) : core_(core) {}

  /// Make room for one more answer to whoever sent `request`.
  /// @return false: no room now, leave the request where it is. An unreachable sender is no
  /// reason to wait: its answers vanish.
  [[nodiscard]] bool ready(const Frame& request) {
    if (open_ != nullptr && open_->dest == request.source && open_->source == request.dest &&
        count_ < kAcksPerFrame) [[likely]] {
      return true;
    }
    return open(request);
  }

  /// Answer a segment (or a whole message) of the request that ready() was asked for.
  void ack(uint32_t place, uint32_t segment, Answer answer) {
    if (core_.faults.enabled() && core_.faults.draw(Fault::kLostResponse)) [[unlikely]] {
      return;
    }
    auto* acks = reinterpret_cast<Ack*>(open_->payload());
    acks[count_++] = Ack::of(place, segment, answer);
  }

  /// Room for acks in a row, for runs; after ready() said yes. Only without faults.
  struct Run {
    Ack* next;
    Ack* end;
  };
  [[nodiscard]] Run run() {
    auto* acks = reinterpret_cast<Ack*>(open_->payload());
    return {acks + count_, acks + kAcksPerFrame};
  }
  /// Acks up to run.next were written.
  void end_run(const Run& run) {
    count_ = static_cast<uint32_t>(run.next - reinterpret_cast<Ack*>(open_->payload()));
  }

  /// A response with data or for a transaction, to be filled by the caller and then send().
  /// @return null: no room now.
  [[nodiscard]] Frame* begin(const Frame& request, FrameType type, uint32_t payload_bytes);
  void send(Frame* frame);

  /// What was answered becomes visible.
  void flush();

 private:
  static constexpr uint32_t kAcksPerFrame = 48;

  bool open(const Frame& request);
  void close();

  Core& core_;
  Frame* open_ = nullptr;  // reserved in out_->responses, or the sink
  uint32_t count_ = 0;
  Outbound* out_ = nullptr;
  Outbound* dirty_ = nullptr;  // to be published
  bool to_sink_ = false;
  alignas(32) uint8_t sink_[frame_bytes(4096)] = {};
};

}  // namespace rio::model
