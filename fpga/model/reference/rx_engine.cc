#include "fpga/model/reference/rx_engine.hpp"

#include <algorithm>

#include "fpga/model/copy.hpp"

namespace rio::model {
namespace {

using regs::Status;

constexpr uint32_t kFull = regs::kSegmentBytesMax;

}  // namespace

RxEngine::RxEngine(Core& core, Responder& responder) : core_(core), responder_(responder) {
  contexts_.reserve(core.config.rx_contexts);
  runs_.reserve(kRunsMax);  // pulls point at them
}

void RxEngine::count(Answer answer) {
  if (answer == Answer::kRetry) {
    ++core_.counts.rx_retries;
  } else if (answer == Answer::kError) {
    ++core_.counts.rx_errors;
  }
}

Pair* RxEngine::target(const InFrame& frame) {
  const Owner* owner = core_.owner(frame.dest);
  if (owner == nullptr || owner->pair_of_mbox[frame.mbox()] == kNobody) [[unlikely]] {
    ++core_.counts.rx_unmapped;
    return nullptr;
  }
  return &core_.pairs[owner->pair_of_mbox[frame.mbox()]];
}

int RxEngine::dedicated_ring(const Pair& pair, const InFrame& frame) const {
  uint32_t open = pair.dedicated_open[frame.mbox()];
  while (open != 0) {
    const auto queue = static_cast<uint32_t>(__builtin_ctz(open));
    if (pair.dedicated_source[queue] == frame.source) {
      return static_cast<int>(kDedicatedRing + queue);
    }
    open &= open - 1;
  }
  return -1;
}

bool RxEngine::well_formed(const InFrame& frame) const {
  const bool last = frame.segment + 1u == frame.segments;
  return frame.segments >= 1 && frame.segments <= regs::kSegmentsMax &&
         frame.segment < frame.segments && frame.length >= 1 && frame.ssize >= 8 &&
         frame.ssize <= kFull && (frame.ssize & (frame.ssize - 1)) == 0 &&
         (last ? frame.length <= frame.ssize : frame.length == frame.ssize) &&
         (frame.segments == 1 || frame.mbox() < regs::kMultiMailboxes);
}

Answer RxEngine::admit_dedicated(const InFrame& frame, Pair& pair, uint32_t number,
                                 uint32_t whole_bytes, Context* out) {
  Ring& ring = pair.rings[number];
  if (!ring.running()) {
    return Answer::kError;  // stopped by an error; the shared queue would break the stream
  }
  if (ring.held || (ring.posted() == 0 && core_.look_at_tail(pair, number) == 0)) {
    return Answer::kRetry;  // open and empty
  }
  regs::DedicatedDesc entry;
  std::memcpy(&entry, ring.entry(ring.head, 4), sizeof(entry));
  // Known of a message before its last segment: how many segments, and that all but the last are
  // of ssize. whole_bytes is 0 then.
  const bool count_fits = (entry.size + frame.ssize - 1) / frame.ssize == frame.segments;
  const uint64_t addr_mask = (1ull << core_.config.dedicated_addr_log2) - 1;
  const uint32_t size_mask = (1u << core_.config.dedicated_size_log2) - 1;
  const bool legal = entry.size != 0 && entry.size <= regs::kMessageBytesMax &&
                     (entry.size & size_mask) == 0 && (entry.addr & addr_mask) == 0;
  out->index = ring.head;
  out->cookie = entry.cookie;
  out->size = entry.size;
  out->addr = entry.addr;
  ++ring.head;
  if (!legal) {
    complete(*out, 0, Status::kBadDescriptor);
    core_.fail_ring(pair, number, regs::RingError::kMismatch, out->index);
    return Answer::kError;
  }
  if (!count_fits || (whole_bytes != 0 && whole_bytes != entry.size)) {
    complete(*out, 0, Status::kSizeMismatch);
    core_.fail_ring(pair, number, regs::RingError::kMismatch, out->index);
    return Answer::kError;
  }
  return Answer::kDone;
}

Answer RxEngine::admit(const InFrame& frame, Pair* pair, uint32_t whole_bytes, Context* out) {
  if (pair == nullptr || core_.faults.draw(Fault::kError)) {
    return Answer::kError;
  }
  if (core_.faults.draw(Fault::kRetry)) {
    return Answer::kRetry;
  }
  out->pair = pair;
  out->source = frame.source;
  out->dest_id = frame.dest;
  out->place = frame.place;
  out->segments = frame.segments;
  out->ssize = frame.ssize;
  out->message = frame.address;
  out->broken = false;
  if (frame.mbox() < regs::kMultiMailboxes && pair->dedicated_open[frame.mbox()] != 0) {
    const int number = dedicated_ring(*pair, frame);
    if (number >= 0) {
      out->ring = static_cast<uint8_t>(number);
      return admit_dedicated(frame, *pair, static_cast<uint32_t>(number), whole_bytes, out);
    }
  }
  Ring& ring = pair->rings[kSharedRing];
  if (!ring.running()) {
    return Answer::kError;
  }
  if (ring.held || (ring.posted() == 0 && core_.look_at_tail(*pair, kSharedRing) == 0)) {
    return Answer::kRetry;
  }
  out->ring = kSharedRing;
  out->index = ring.head;
  out->arrival = pair->arrivals++;
  std::memcpy(&out->addr, ring.entry(ring.head, 3), sizeof(out->addr));
  ++ring.head;
  return Answer::kDone;
}

bool RxEngine::sane_whole(const Frame& frame) const {
  return frame.length >= 1 && frame.length <= regs::kMessageBytesMax && frame.segments >= 1 &&
         frame.segments <= regs::kSegmentsMax && frame.ssize >= 8 && frame.ssize <= kFull &&
         frame.length <= frame.segments * frame.ssize &&
         frame.length > (frame.segments - 1) * frame.ssize &&
         (frame.segments == 1 || frame.mbox() < regs::kMultiMailboxes);
}

bool RxEngine::on_message(const InFrame& frame) {
  if (!responder_.ready(frame)) {
    return false;
  }
  ++core_.counts.rx_packets;
  const uint32_t place = frame.place;
  if (!sane_whole(frame)) [[unlikely]] {
    responder_.ack(place, 0, Answer::kError);
    count(Answer::kError);
    return true;
  }
  if (frame.segments > 1 && contexts_.size() >= core_.config.rx_contexts) {
    responder_.ack(place, 0, Answer::kRetry);
    count(Answer::kRetry);
    return true;
  }
  Context context;
  const Answer answer = admit(frame, target(frame), padded(frame.length), &context);
  if (answer == Answer::kDone) [[likely]] {
    land_whole(context, frame);
    complete(context, padded(frame.length), Status::kOk);
  } else {
    count(answer);
  }
  responder_.ack(place, 0, answer);
  return true;
}

void RxEngine::land_whole(const Context& context, const InFrame& frame) {
  const uint32_t bytes = padded(frame.length);
  if (frame.segments == 1 || frame.ssize == kFull) [[likely]] {
    const uint32_t last = (frame.segments - 1) * kFull;
    const uint32_t extent = core_.config.quirk_last_full_256 ? last + kFull : bytes;
    uint8_t* to = core_.host.writable(context.addr, extent);
    if (to != nullptr) [[likely]] {
      copy_bytes(to, frame.payload(), bytes);
      if (extent != bytes) {
        std::memset(to + bytes, 0, extent - bytes);
      }
      return;
    }
  }
  for (uint32_t k = 0; k < frame.segments; ++k) {
    const uint32_t offset = k * frame.ssize;
    land(context, frame, k, offset, frame.payload() + offset,
         std::min<uint32_t>(frame.ssize, bytes - offset));
  }
}

void RxEngine::land(const Context& context, const InFrame& frame, uint32_t segment, uint32_t offset,
                    const uint8_t* bytes, uint32_t len) {
  const bool last = segment + 1u == frame.segments;
  if (last && core_.config.quirk_last_at_256) {
    offset = kFull * (frame.segments - 1u);
  }
  if (last && core_.config.quirk_last_full_256) {
    uint8_t full[kFull] = {};
    std::memcpy(full, bytes, len);
    core_.host.write(context.addr + offset, full, kFull);
    return;
  }
  core_.host.write(context.addr + offset, bytes, len);
}

void RxEngine::complete(const Context& context, uint32_t bytes, Status status) {
  Ring& ring = context.pair->rings[context.ring];
  if (context.ring != kSharedRing) {
    regs::EntryCpl cpl{context.cookie, context.index, bytes, 0};
    core_.complete(ring, &cpl, static_cast<uint32_t>(status));
    return;
  }
  regs::SharedCpl cpl;
  cpl.source = context.source;
  cpl.dest_id = context.dest_id;
  cpl.length = static_cast<uint16_t>(bytes);
  cpl.segments = context.segments;
  cpl.place = context.place;
  cpl.index = context.index;
  cpl.arrival = context.arrival;
  cpl.time = core_.ticks();
  cpl.reserved = 0;
  core_.complete(ring, &cpl, static_cast<uint32_t>(status));
}

RxEngine::Context* RxEngine::find(const InFrame& frame) {
  for (Context& context : contexts_) {
    if (context.source == frame.source && context.dest_id == frame.dest &&
        context.place == frame.place) {
      return &context;
    }
  }
  return nullptr;
}

bool RxEngine::on_segment(const InFrame& frame) {
  if (!responder_.ready(frame)) {
    return false;
  }
  ++core_.counts.rx_packets;
  const uint32_t number = frame.segment & 15u;
  Answer answer = Answer::kError;
  if (!well_formed(frame)) {
    if (Context* context = find(frame); context != nullptr && !context->broken) {
      drop(*context, Status::kFormat);
    }
  } else if (frame.segments == 1) {
    Context context;
    answer = admit(frame, target(frame), padded(frame.length), &context);
    if (answer == Answer::kDone) {
      land(context, frame, 0, 0, frame.payload(), padded(frame.length));
      complete(context, padded(frame.length), Status::kOk);
    }
  } else if (Context* context = find(frame); context != nullptr) {
    answer = take_segment(*context, frame);
  } else if (given_up(frame)) {
    answer = Answer::kError;
  } else if (contexts_.size() >= core_.config.rx_contexts) {
    answer = Answer::kRetry;
  } else {
    Context fresh{};
    answer = admit(frame, target(frame), 0, &fresh);
    if (answer == Answer::kDone) {
      fresh.missing = static_cast<uint16_t>((1u << frame.segments) - 1);
      contexts_.push_back(fresh);
      answer = take_segment(contexts_.back(), frame);
    }
  }
  count(answer);
  responder_.ack(frame.place, number, answer);
  return true;
}

Answer RxEngine::take_segment(Context& context, const InFrame& frame) {
  const auto bit = static_cast<uint16_t>(1u << frame.segment);
  if (context.broken) {
    return Answer::kError;
  }
  if (frame.segments != context.segments || frame.ssize != context.ssize ||
      frame.address != context.message || (context.missing & bit) == 0) {
    drop(context, Status::kFormat);
    return Answer::kError;
  }
  const bool last = frame.segment + 1u == frame.segments;
  const uint32_t before = (frame.segments - 1u) * frame.ssize;
  if (last && context.ring != kSharedRing && before + padded(frame.length) != context.size) {
    Pair& pair = *context.pair;
    const uint32_t ring = context.ring;
    const uint32_t index = context.index;
    drop(context, Status::kSizeMismatch);
    core_.fail_ring(pair, ring, regs::RingError::kMismatch, index);
    return Answer::kError;
  }
  land(context, frame, frame.segment, frame.segment * frame.ssize, frame.payload(),
       padded(frame.length));
  context.missing = static_cast<uint16_t>(context.missing & ~bit);
  context.since_ns = core_.now_ns;
  if (last) {
    context.last_len = static_cast<uint16_t>(padded(frame.length));
  }
  if (context.missing == 0) {
    complete(context, before + context.last_len, Status::kOk);
    context = contexts_.back();
    contexts_.pop_back();
  }
  return Answer::kDone;
}

void RxEngine::drop(Context& context, Status status) {
  // The context stays until its sender is silent, so that stragglers are answered ERROR and do
  // not begin a message of their own.
  complete(context, 0, status);
  context.broken = true;
  context.since_ns = core_.now_ns;
}

bool RxEngine::on_doorbell(const InFrame& frame) {
  Frame* response = responder_.begin(frame, FrameType::kResponse, 0);
  if (response == nullptr) {
    return false;
  }
  ++core_.counts.rx_packets;
  const Owner* owner = core_.owner(frame.dest);
  Answer answer = Answer::kError;
  if (owner == nullptr || owner->pair_of_doorbells == kNobody) {
    ++core_.counts.rx_unmapped;
  } else if (!core_.faults.draw(Fault::kError)) {
    Pair& pair = core_.pairs[owner->pair_of_doorbells];
    Ring& ring = pair.rings[kDoorbellRing];
    if (ring.running()) {
      answer = Answer::kRetry;
      if (core_.look_at_tail(pair, kDoorbellRing) > 0 && !core_.faults.draw(Fault::kRetry)) {
        regs::DoorbellCpl cpl{frame.source, frame.dest, core_.ticks(), 0};
        core_.complete(ring, &cpl, static_cast<uint32_t>(frame.address & 0xFFFF));
        ++ring.head;
        answer = Answer::kDone;
      }
    }
  }
  count(answer);
  response->op = static_cast<uint8_t>(answer);
  responder_.send(response);
  return true;
}

void RxEngine::check_timers() {
  for (size_t i = 0; i < contexts_.size();) {
    if (core_.now_ns - contexts_[i].since_ns > core_.timers.receive_ns) {
      give_up(i);
    } else {
      ++i;
    }
  }
}

void RxEngine::lose(uint32_t source) {
  for (size_t i = 0; i < contexts_.size();) {
    if (contexts_[i].source == source) {
      give_up(i);
    } else {
      ++i;
    }
  }
  std::erase_if(given_up_, [=](const auto& each) { return std::get<0>(each.first) == source; });
}

void RxEngine::give_up(size_t i) {
  if (!contexts_[i].broken) {
    ++core_.counts.rx_timeouts;
    complete(contexts_[i], 0, Status::kReceiveTimeout);
    remember(contexts_[i]);
  }
  contexts_[i] = contexts_.back();
  contexts_.pop_back();
}

/// A message is given up of which segments were answered DONE and none ERROR: if the rest were
/// answered DONE too, its sender would take it for delivered.
void RxEngine::remember(const Context& context) {
  given_up_[{context.source, context.dest_id, context.place}] = context.message;
}

/// Whether a segment is of such a message.
bool RxEngine::given_up(const InFrame& frame) {
  const auto it = given_up_.find({frame.source, frame.dest, frame.place});
  if (it == given_up_.end()) {
    return false;
  }
  if (it->second == frame.address) {
    return true;
  }
  given_up_.erase(it);  // its sender is done with that one
  return false;
}

void RxEngine::stop(Pair& pair, uint32_t number) {
  Ring& ring = pair.rings[number];
  for (Context& context : contexts_) {
    if (context.pair == &pair && context.ring == number && !context.broken) {
      drop(context, Status::kFlushed);
      remember(context);
    }
  }
  Context context{};
  context.pair = &pair;
  context.ring = static_cast<uint8_t>(number);
  for (; ring.entry_bytes != 0 && ring.posted() > 0; ++ring.head) {
    context.index = ring.head;
    if (number >= kDedicatedRing) {
      regs::DedicatedDesc entry;
      std::memcpy(&entry, ring.entry(ring.head, 4), sizeof(entry));
      context.cookie = entry.cookie;
    }
    complete(context, 0, Status::kFlushed);
  }
}

void RxEngine::forget() {
  contexts_.clear();
}

}  // namespace rio::model
