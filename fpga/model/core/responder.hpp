/// @file
/// Answers of a card. They have room before a request is looked at, so that none is ever lost.
#pragma once

#include "fpga/model/core/core.hpp"

namespace rio::model {

class Responder {
 public:
  static constexpr uint32_t kAcksPerFrame = 48;

  explicit Responder(Core& core) : core_(core) {}

  /// Make room for one more answer to the sender of `request`.
  /// @return false: no room now, leave the request where it is. An unreachable sender is no
  /// reason to wait: its answers vanish.
  [[nodiscard]] bool ready(const InFrame& request) {
    if (open_ && dest_ == request.source && source_ == request.dest && count_ < kAcksPerFrame)
        [[likely]] {
      return true;
    }
    return open(request);
  }

  /// Whether begin() would have room for so many responses without data.
  [[nodiscard]] bool ready_for(const InFrame& request, uint32_t responses) {
    close();
    const Outbound* const out = core_.wire->route(request.source);
    return out == nullptr || out->responses->fits(responses * frame_bytes(0));
  }

  /// Whether answer_at_once() may be called: this request is of the sender that asked last.
  [[nodiscard]] bool ready_at_once(uint32_t asks, uint32_t asked) {
    return dest_ == asks && source_ == asked && out_ != nullptr && !out_->gone && !pending() &&
           out_->responses->has_short_room(frame_bytes(sizeof(Ack)));
  }
  /// Answer one message, visibly at once. Only without faults.
  void answer_at_once(Ack ack) {
    constexpr uint32_t kBytes = frame_bytes(sizeof(Ack));
    open_ = false;  // that room is not kept any more
    FrameWriter& writer = *out_->responses;
    if (writer.put_short(kBytes, ack_head(), [&](uint8_t* at) { store64(at, ack.word()); }))
        [[unlikely]] {
      writer.wake();
    }
  }

  /// A request has come, likely from the sender of the last one.
  void prepare() const {
    if (out_ != nullptr) {
      out_->responses->prepare();
    }
  }

  /// Answer a segment (or a whole message) of the request that ready() was asked for.
  void ack(uint32_t place, uint32_t segment, Answer answer) {
    if (core_.faults.enabled() && core_.faults.draw(Fault::kLostResponse)) [[unlikely]] {
      return;
    }
    acks_[count_++] = Ack::of(place, segment, answer);
  }

  /// Room for acks in a row, for runs; after ready() said yes. Only without faults.
  struct Run {
    Ack* next;
    Ack* end;
  };
  [[nodiscard]] Run run() { return {acks_ + count_, acks_ + kAcksPerFrame}; }
  /// Acks up to run.next were written.
  void end_run(const Run& run) { count_ = static_cast<uint32_t>(run.next - acks_); }

  /// A response with data or for a transaction, to be filled by the caller and then send().
  /// @return null: no room now.
  [[nodiscard]] Frame* begin(const InFrame& request, FrameType type, uint32_t payload_bytes);
  void send(Frame* frame);

  /// Make the answers visible to their receivers.
  void flush();
  [[nodiscard]] bool pending() const { return count_ != 0 || dirty_ != nullptr; }

 private:
  [[nodiscard]] FrameHead ack_head() const {
    return {static_cast<uint64_t>(FrameType::kAcks) << 32,
            source_ | static_cast<uint64_t>(dest_) << 32, sizeof(Ack), 0};
  }
  bool open(const InFrame& request);
  void close();
  void send_acks();
  void mark_dirty(Outbound* out);

  Core& core_;
  bool open_ = false;  // there is room for acks_ in out_->responses
  uint32_t source_ = 0;
  uint32_t dest_ = 0;
  uint32_t count_ = 0;
  Ack acks_[kAcksPerFrame] = {};
  Outbound* out_ = nullptr;    // null: the sender cannot be reached
  Outbound* dirty_ = nullptr;  // to be published
  alignas(32) uint8_t sink_[frame_bytes(4096)] = {};
};

}  // namespace rio::model
