/// @file
/// Sends a card's answers. Room for the answer is reserved before a request is processed, so no
/// answer is ever lost.
#pragma once

#include "fpga/model/core/core.hpp"

namespace rio::model {

class Responder {
 public:
  static constexpr uint32_t kAcksPerFrame = 48;

  explicit Responder(Core& core) : core_(core) {}

  /// Make room for one more answer to the sender of `request`. @return false: no room now; leave
  /// the request in the ring. Answers to an unreachable sender are dropped.
  [[nodiscard]] bool ready(const InFrame& request) {
    if (open_ && dest_ == request.source && source_ == request.dest && count_ < kAcksPerFrame)
        [[likely]] {
      return true;
    }
    return open(request);
  }

  /// Whether begin() has room for `responses` responses without data.
  [[nodiscard]] bool ready_for(const InFrame& request, uint32_t responses) {
    close();
    const Outbound* const out = core_.wire->route(request.source);
    return out == nullptr || out->responses->fits(responses * frame_bytes(0));
  }

  /// Whether answer_later() may be called: the request's sender and destination are those of the
  /// last one.
  [[nodiscard]] bool ready_for_one(uint32_t asks, uint32_t asked) {
    return dest_ == asks && source_ == asked && out_ != nullptr && !out_->gone && !pending() &&
           out_->responses->has_short_room(frame_bytes(sizeof(Ack)));
  }
  /// Answer one message with the next flush(), which comes before anything else is sent or
  /// received. Only without faults. @param from the ring of the message, popped; it is released
  /// after the answer is sent, since a sender that sees its request taken must find the answer.
  void answer_later(Ack ack, FrameReader* from) {
    open_ = false;  // the room reserved for several acks is not needed
    acks_[0] = ack;
    count_ = 1;
    taken_from_ = from;
  }

  /// A request has arrived: prefetch, assuming that it is from the same sender as the last one.
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

  /// Room for the acks of a run; only after ready() returned true, and without faults.
  struct Run {
    Ack* next;
    Ack* end;
  };
  [[nodiscard]] Run run() { return {acks_ + count_, acks_ + kAcksPerFrame}; }
  /// The caller has written acks up to run.next.
  void end_run(const Run& run) { count_ = static_cast<uint32_t>(run.next - acks_); }

  /// Reserve a response with data, or to a transaction. The caller fills it, then calls send().
  /// @return null: no room now.
  [[nodiscard]] Frame* begin(const InFrame& request, FrameType type, uint32_t payload_bytes);
  /// Make the response visible to its receiver, after all earlier answers to it.
  void send(Frame* frame) { send(frame, frame->payload()); }
  /// send() with the payload from elsewhere.
  void send(Frame* frame, const uint8_t* payload);

  /// Make the answers visible to their receivers.
  void flush();
  [[nodiscard]] bool pending() const { return count_ != 0 || dirty_ != nullptr; }

 private:
  [[nodiscard]] FrameHead ack_head() const {
    return {static_cast<uint64_t>(FrameType::kAcks) << 32,
            source_ | static_cast<uint64_t>(dest_) << 32, sizeof(Ack), 0};
  }
  void turn_to(const InFrame& request);
  bool open(const InFrame& request);
  void close();
  void send_acks();
  void mark_dirty(Outbound* out);

  Core& core_;
  bool open_ = false;  // room for acks_ is reserved in out_->responses
  uint32_t source_ = 0;
  uint32_t dest_ = 0;
  uint32_t count_ = 0;
  Ack acks_[kAcksPerFrame] = {};
  Outbound* out_ = nullptr;                             // null: the sender cannot be reached
  Outbound* dirty_ = nullptr;                           // has unpublished answers
  FrameReader* taken_from_ = nullptr;                   // to be released with the next flush()
  alignas(64) uint8_t staged_[frame_bytes(4096)] = {};  // a response, until send()
};

}  // namespace rio::model
