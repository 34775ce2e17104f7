#include "fpga/model/reference/rx_engine.hpp"

#include <algorithm>
#include <bit>

#include "fpga/model/copy.hpp"

namespace rio::model {

using regs::Status;

namespace {

constexpr uint32_t kFull = regs::kSegmentBytesMax;

}  // namespace

RxEngine::RxEngine(Core& core, Responder& responder, Admission& admission)
    : core_(core), responder_(responder), admission_(admission) {
  contexts_.reserve(core.config.rx_contexts + core.config.poisoned);
}

bool RxEngine::on_message(const InFrame& frame) {
  if (!responder_.ready(frame)) {
    return false;
  }
  ++core_.counts.rx_packets;
  const bool is_whole = frame.type == FrameType::kMessage;
  const Answer answer = is_whole ? take_whole(frame) : take(frame);
  core_.count_answer(answer);
  responder_.ack(frame.place, is_whole ? 0 : frame.segment & 15u, answer);
  return true;
}

Answer RxEngine::take(const InFrame& frame) {
  Reassembly* context = find(frame);
  if (!well_formed(frame)) {
    if (context != nullptr && context->poison == Poison::kNone) {
      drop(*context, Status::kFormat);
    }
    return Answer::kError;
  }
  if (frame.segments == 1) {
    return take_whole(frame);
  }
  // Another message of that name than the one that was given up: its sender has ended the old one.
  const bool is_other = context != nullptr && context->poison == Poison::kGivenUp &&
                        context->message != frame.address;
  if (context != nullptr && !is_other) {
    return take_next(*context, frame);
  }
  if (is_other) {
    *context = contexts_.back();
    contexts_.pop_back();
  }
  return full() ? Answer::kRetry : take_first(frame);
}

bool RxEngine::well_formed(const InFrame& frame) {
  const bool last = frame.segment + 1u == frame.segments;
  return frame.segments >= 1 && frame.segments <= regs::kSegmentsMax &&
         frame.segment < frame.segments && frame.length >= 1 && frame.ssize >= 8 &&
         frame.ssize <= regs::kSegmentBytesMax && (frame.ssize & (frame.ssize - 1)) == 0 &&
         (last ? frame.length <= frame.ssize : frame.length == frame.ssize) &&
         (frame.segments == 1 || frame.mbox() < regs::kMultiMailboxes);
}

RxEngine::Reassembly* RxEngine::find(const InFrame& frame) {
  for (Reassembly& context : contexts_) {
    if (context.source == frame.source && context.dest_id == frame.dest &&
        context.place == frame.place) {
      return &context;
    }
  }
  return nullptr;
}

bool RxEngine::sane(const Frame& frame) {
  return frame.length >= 1 && frame.length <= regs::kMessageBytesMax && frame.segments >= 1 &&
         frame.segments <= regs::kSegmentsMax && frame.ssize >= 8 && frame.ssize <= kFull &&
         frame.length <= frame.segments * frame.ssize &&
         frame.length > (frame.segments - 1) * frame.ssize &&
         (frame.segments == 1 || frame.mbox() < regs::kMultiMailboxes);
}

/// Take a message that travels as one frame, or a segment that is a whole message.
Answer RxEngine::take_whole(const InFrame& frame) {
  if (!sane(frame)) [[unlikely]] {
    return Answer::kError;
  }
  if (frame.segments > 1 && full()) {
    return Answer::kRetry;
  }
  Landing landing;
  const uint32_t bytes = padded(frame.length);
  const Answer answer = admission_.admit(frame, admission_.target(frame), bytes, &landing);
  if (answer == Answer::kDone) [[likely]] {
    land_whole(landing, frame);
    admission_.complete(landing, bytes, Status::kOk);
  }
  return answer;
}

void RxEngine::land_whole(const Landing& landing, const InFrame& frame) {
  const uint32_t bytes = padded(frame.length);
  if (frame.segments == 1 || frame.ssize == kFull) [[likely]] {
    const uint32_t last = (frame.segments - 1) * kFull;
    const uint32_t extent = core_.config.quirk_last_full_256 ? last + kFull : bytes;
    uint8_t* to = landing.ring->pair->function->host->writable(landing.addr, extent);
    if (to != nullptr) [[likely]] {
      landing.ring->pcie.write(extent);
      copy_bytes(to, frame.payload(), bytes);
      if (extent != bytes) {
        std::memset(to + bytes, 0, extent - bytes);
      }
      return;
    }
  }
  for (uint32_t k = 0; k < frame.segments; ++k) {
    const uint32_t offset = k * frame.ssize;
    admission_.land(landing, frame, k, offset, frame.payload() + offset,
                    std::min<uint32_t>(frame.ssize, bytes - offset));
  }
}

/// Take the first segment to arrive of a message of several, whatever its number.
Answer RxEngine::take_first(const InFrame& frame) {
  Reassembly fresh{};
  const Answer answer = admission_.admit(frame, admission_.target(frame), 0, &fresh);
  if (answer != Answer::kDone) {
    return answer;
  }
  fresh.ssize = frame.ssize;
  fresh.message = frame.address;
  fresh.missing = static_cast<uint16_t>((1u << frame.segments) - 1);
  contexts_.push_back(fresh);
  return take_next(contexts_.back(), frame);
}

Answer RxEngine::take_next(Reassembly& context, const InFrame& frame) {
  const auto bit = static_cast<uint16_t>(1u << frame.segment);
  if (context.poison != Poison::kNone) {
    context.since_ns = core_.now_ns;
    return Answer::kError;
  }
  if (frame.segments != context.segments || frame.ssize != context.ssize ||
      frame.address != context.message || (context.missing & bit) == 0) {
    drop(context, Status::kFormat);
    return Answer::kError;
  }
  const bool last = frame.segment + 1u == frame.segments;
  const uint32_t before = (frame.segments - 1u) * frame.ssize;
  if (last && context.ring->number != kSharedRing &&
      before + padded(frame.length) != context.size) {
    drop(context, Status::kSizeMismatch);
    core_.fail_ring(*context.ring, regs::RingError::kMismatch, context.index);
    return Answer::kError;
  }
  admission_.land(context, frame, frame.segment, frame.segment * frame.ssize, frame.payload(),
                  padded(frame.length));
  context.missing = static_cast<uint16_t>(context.missing & ~bit);
  context.since_ns = core_.now_ns;
  if (last) {
    context.last_len = static_cast<uint16_t>(padded(frame.length));
  }
  if (context.missing == 0) {
    admission_.complete(context, before + context.last_len, Status::kOk);
    context = contexts_.back();
    contexts_.pop_back();
  }
  return Answer::kDone;
}

void RxEngine::drop(Reassembly& context, Status status, Poison poison) {
  admission_.complete(context, 0, status);
  context.poison = poison;
  context.since_ns = core_.now_ns;
}

bool RxEngine::full() const {
  const auto poisoned = static_cast<uint32_t>(
      std::count_if(contexts_.begin(), contexts_.end(),
                    [](const Reassembly& context) { return context.poison != Poison::kNone; }));
  return contexts_.size() - std::min(poisoned, core_.config.poisoned) >= core_.config.rx_contexts;
}

uint64_t RxEngine::missing_bytes() const {
  uint64_t bytes = 0;
  for (const Reassembly& context : contexts_) {
    if (context.poison == Poison::kNone) {
      bytes += uint64_t{context.ssize} * static_cast<uint32_t>(std::popcount(context.missing));
    }
  }
  return bytes;
}

void RxEngine::check_timers() {
  const auto is_over = [this](const Reassembly& context) {
    return core_.now_ns - context.since_ns > core_.timers.receive_ns;
  };
  std::erase_if(contexts_, [&](const Reassembly& context) {
    return context.poison != Poison::kNone && is_over(context);
  });
  for (Reassembly& context : contexts_) {
    if (is_over(context)) {
      ++core_.counts.rx_timeouts;
      drop(context, Status::kReceiveTimeout, Poison::kGivenUp);
    }
  }
}

void RxEngine::lose(uint32_t source) {
  std::erase_if(contexts_, [this, source](const Reassembly& context) {
    if (context.source == source && context.poison == Poison::kNone) {
      ++core_.counts.rx_timeouts;
      admission_.complete(context, 0, Status::kReceiveTimeout);
    }
    return context.source == source;
  });
}

bool RxEngine::on_doorbell(const InFrame& frame) {
  Frame* response = responder_.begin(frame, FrameType::kResponse, 0);
  if (response == nullptr) {
    return false;
  }
  ++core_.counts.rx_packets;
  const Answer answer = take_doorbell(frame);
  core_.count_answer(answer);
  response->op = static_cast<uint8_t>(answer);
  responder_.send(response);
  return true;
}

Answer RxEngine::take_doorbell(const InFrame& frame) {
  const Owner* owner = core_.owner(frame.dest);
  if (owner == nullptr || owner->pair_of_doorbells == kNoPair) {
    ++core_.counts.rx_unmapped;
    return Answer::kError;
  }
  if (core_.faults.draw(Fault::kError)) {
    return Answer::kError;
  }
  Ring& ring = core_.pairs[owner->pair_of_doorbells].rings[kDoorbellRing];
  if (!ring.running()) {
    return Answer::kError;
  }
  if (core_.poll_tail(ring) == 0 || core_.faults.draw(Fault::kRetry)) {
    return Answer::kRetry;
  }
  regs::DoorbellCpl cpl{frame.source, frame.dest, core_.ticks(), 0};
  core_.complete(ring, &cpl, static_cast<uint32_t>(frame.address & 0xFFFF));
  ++ring.head;
  return Answer::kDone;
}

void RxEngine::forget(const Pair& pair) {
  std::erase_if(contexts_,
                [&pair](const Reassembly& context) { return context.ring->pair == &pair; });
}

void RxEngine::stop(Ring& ring) {
  for (Reassembly& context : contexts_) {
    if (context.ring == &ring && context.poison == Poison::kNone) {
      drop(context, Status::kFlushed);
    }
  }
  if (ring.number >= kDedicatedRing) {
    core_.flush_entries<regs::DedicatedDesc>(ring);
  }
  for (; ring.number == kSharedRing && ring.posted() > 0; ++ring.head) {
    Landing unused{};
    unused.ring = &ring;
    unused.index = ring.head;
    admission_.complete(unused, 0, Status::kFlushed);
  }
}

}  // namespace rio::model
