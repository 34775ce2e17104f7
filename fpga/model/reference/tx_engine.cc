#include "fpga/model/reference/tx_engine.hpp"

#include <algorithm>
#include <bit>

#include "fpga/model/copy.hpp"
#include "fpga/model/reference/tx_desc.hpp"

namespace rio::model {

using regs::Status;
using Control = regs::tx_desc::Control;

namespace {

/// Whether an entry is one that the card sends.
bool is_wanted(const TxEntry& entry) {
  if (entry.is_doorbell()) {
    return units_of(entry.desc) == 1;
  }
  return Control::op.get(entry.desc.control) == static_cast<uint32_t>(regs::TxOp::kMessage) &&
         acceptable(entry.desc, entry.further.units[0]);
}

}  // namespace

void TxEngine::run(Pair& pair) {
  Ring& ring = pair.rings[kTxRing];
  uint32_t count = fetchable(ring);
  if (count == 0) {
    return;
  }
  if (core_.host.posting()) [[unlikely]] {
    count = core_.host.rng().below(count + 1);  // the emulated PCIe delays the fetch of descriptors
  }
  const uint32_t end = ring.head + count;
  while (static_cast<int32_t>(end - ring.head) > 0 && launch(pair, ring)) {
  }
  if (pair.last_flow != nullptr) {
    pair.last_flow->way->requests->publish();
  }
}

bool TxEngine::launch(Pair& pair, Ring& ring) {
  ring.count_fetch(sizeof(regs::TxDesc));
  TxEntry entry = {ring.fetch<regs::TxDesc>(ring.head), {}, ring.head};
  const regs::TxDesc& desc = entry.desc;
  if (!entry.is_doorbell() && is_skip(desc)) {
    ++ring.head;
    return true;
  }
  const uint32_t units = entry.is_doorbell() ? 1 : units_of(desc);
  if (ring.posted() < units) {
    return false;  // the other units are not posted yet
  }
  ring.count_fetch(sizeof(regs::TxDesc), units);
  for (uint32_t i = 1; i < units; ++i) {
    entry.further.units[i - 1] = ring.fetch<regs::TxWide>(ring.head + i);
  }
  return launch_entry(pair, ring, entry);
}

bool TxEngine::launch_entry(Pair& pair, Ring& ring, const TxEntry& entry) {
  const regs::TxDesc& desc = entry.desc;
  const uint32_t units = entry.is_doorbell() ? 1 : units_of(desc);
  if (!is_wanted(entry) || ring.crosses(sizeof(regs::TxDesc), units)) {
    finish_unsent(ring, desc, Status::kBadDescriptor);
    return true;
  }
  Flow* flow = core_.flow(pair, desc.dest_id);
  if (flow == nullptr) {
    finish_unsent(ring, desc, Status::kLinkDown);
    return true;
  }
  ++ring.outstanding;
  const bool is_behind = (flow->waiting_lanes & entry.lane_bit()) != 0;
  if (is_behind || !start(*flow, entry)) {
    if (pair.waiting >= core_.config.pass_over || !(is_behind || passes_over(pair, ring, entry))) {
      --ring.outstanding;
      return false;
    }
    wait_inside(*flow, entry);
  }
  ring.head += units;
  ring.next_slot += Control::pushed.get(desc.control);
  return true;
}

bool TxEngine::start(Flow& flow, const TxEntry& entry) {
  const regs::TxDesc& desc = entry.desc;
  if (entry.is_doorbell()) {
    const bool started = transactions_.start(flow, {.ring = kTxRing,
                                                    .owner = entry.index,
                                                    .cookie = desc.cookie,
                                                    .address = desc.addr & 0xFFFF});
    flow.pair.no_flight += started ? 1 : 0;
    return started;
  }
  const uint32_t mbox = Control::mbox.get(desc.control);
  const uint32_t segments = segments_of(desc);
  const bool ordered = Control::order.get(desc.control) != 0 && flow.flies(mbox);
  const int letter = free_letter(flow, mbox, segments > 1);
  // The entry is outstanding already, so it has taken a flight.
  const bool is_full = segments > 1 ? contexts_full() : flights_full(flow.pair);
  if (ordered || letter < 0 || is_full) {
    return false;
  }
  const uint32_t place = place_of(mbox, static_cast<uint32_t>(letter));
  flow.pair.no_flight += segments > 1 ? 1 : 0;
  TxMsg& msg = begin(flow, place, desc, entry.index, segments, !core_.exact);
  if (units_of(desc) > 1) {
    flow.further_of(msg) = entry.further;
  }
  if (!msg.whole || !send(flow, msg, 0)) {
    send_later(flow, msg);
  }
  return true;
}

void TxEngine::on_end(Ring& ring, const Transaction& doorbell, Status status) {
  core_.complete_tx(ring, doorbell.cookie, doorbell.owner, status, doorbell.retries);
  --ring.outstanding;
  --ring.pair->no_flight;
}

TxMsg& TxEngine::begin(Flow& flow, uint32_t place, const regs::TxDesc& desc, uint32_t index,
                       uint32_t segments, bool whole) {
  TxMsg& msg = flow.msgs[place];
  msg.desc = desc;
  msg.index = index;
  msg.whole = whole;
  msg.segments = static_cast<uint8_t>(segments);
  msg.unsent = whole ? 1 : all_segments(segments);
  msg.open = 0;
  msg.retries = 0;
  msg.resend_ns = 0;
  msg.since_ns = core_.now_ns;
  msg.state = TxMsg::kFlying;
  flip_letter(flow, msg);
  contexts_used_ += segments > 1 ? 1 : 0;
  return msg;
}

int TxEngine::free_letter(const Flow& flow, uint32_t mbox, bool several) const {
  uint32_t busy = flow.busy[mbox];
  for (uint32_t m = mbox; several && m < regs::kMailboxes; m += regs::kMultiMailboxes) {
    busy |= flow.busy[m];
  }
  const uint32_t free = ~busy & letter_mask_;
  return free == 0 ? -1 : std::countr_zero(free);
}

/// Take the letter of a message, or free it: in all mailboxes whose names its segments have, which
/// are those with the same low two bits.
void TxEngine::flip_letter(Flow& flow, const TxMsg& msg) {
  const uint32_t place = flow.place(msg);
  const auto bit = static_cast<uint8_t>(1u << (place >> 6));
  const uint32_t mbox = place & 63;
  if (msg.segments == 1) {
    flow.busy[mbox] ^= bit;
    return;
  }
  const uint64_t bits = (uint64_t{bit} << 32 | bit) << 8 * mbox;
  for (uint32_t m = 0; m < regs::kMailboxes; m += 8) {
    store64(flow.busy + m, load64(flow.busy + m) ^ bits);
  }
}

/// Let the letter of a message that has ended rest.
void TxEngine::rest(Pair& pair, TxMsg& msg) {
  msg.unsent = 0;
  msg.state = TxMsg::kKept;
  keep_place(pair, msg, 1);
  find_resting_place(pair, msg);
}

/// Move a message without a resting place to one, if there is one.
void TxEngine::find_resting_place(Pair& pair, TxMsg& msg) {
  if (msg.state == TxMsg::kKept && pair.resting < core_.config.resting) {
    ++pair.resting;
    msg.state = TxMsg::kQuarantine;
    keep_place(pair, msg, -1);
  }
}

/// Take (1) or free (-1) the flight or context of a message that has ended.
void TxEngine::keep_place(Pair& pair, const TxMsg& msg, int32_t more) {
  if (msg.segments > 1) {
    contexts_used_ += static_cast<uint32_t>(more);
  } else {
    pair.no_flight -= static_cast<uint32_t>(more);
  }
}

void TxEngine::rest_over(Flow& flow, TxMsg& msg) {
  if (msg.state == TxMsg::kKept) {
    keep_place(flow.pair, msg, -1);
  }
  flow.pair.resting -= msg.state == TxMsg::kQuarantine ? 1 : 0;
  msg.state = TxMsg::kFree;
  flip_letter(flow, msg);
}

bool TxEngine::gather(Flow& flow, const TxMsg& msg, uint32_t offset, uint32_t len, uint8_t* to) {
  if (core_.faults.draw(Fault::kBadAddress)) {
    return false;
  }
  if (Control::inline_.get(msg.desc.control) != 0) {
    uint8_t bytes[regs::kEntryInlineBytes];
    std::memcpy(bytes, &msg.desc.addr, regs::kInlineBytes);
    if (units_of(msg.desc) > 1) {
      std::memcpy(bytes + regs::kInlineBytes, &flow.further_of(msg), sizeof(TxFurther));
    }
    std::memcpy(to, bytes + offset, len);
    return true;
  }
  HostPort& host = *flow.pair.function->host;
  flow.pair.rings[kTxRing].pcie.read(len);
  if (Control::addrs.get(msg.desc.control) != 0) {
    return gather_pieces(host, msg, flow.further_of(msg).units[0], offset, len, to);
  }
  const uint8_t* bytes = host.readable(msg.desc.addr + offset, len);
  if (bytes == nullptr) {
    return host.read(msg.desc.addr + offset, to, len);
  }
  copy_bytes(to, bytes, len);
  return true;
}

bool TxEngine::gather_pieces(HostPort& host, const TxMsg& msg, const regs::TxWide& wide,
                             uint32_t offset, uint32_t len, uint8_t* to) {
  const uint32_t addrs = Control::addrs.get(msg.desc.control);
  const uint64_t addr[] = {msg.desc.addr, wide.addr1, wide.addr2, wide.addr3};
  const uint32_t piece[] = {static_cast<uint32_t>(msg.desc.aux), wide.len1, wide.len2, wide.len3};
  for (uint32_t i = 0; i < addrs && len > 0; ++i) {
    if (offset >= piece[i]) {
      offset -= piece[i];
      continue;
    }
    const uint32_t part = std::min(len, piece[i] - offset);
    if (!host.read(addr[i] + offset, to, part)) {
      return false;
    }
    to += part;
    len -= part;
    offset = 0;
  }
  return true;
}

bool TxEngine::send(Flow& flow, TxMsg& msg, uint32_t segment) {
  if (msg.segments == TxMsg::kRun) {
    return runs_->send(flow, msg);
  }
  const uint32_t ssize = ssize_bytes(Control::ssize.get(msg.desc.control));
  const uint32_t offset = segment * ssize;
  const uint32_t length = msg.whole ? msg.desc.length : std::min(ssize, msg.desc.length - offset);
  const uint32_t bytes = frame_bytes(padded(length));
  Frame* frame = flow.way->requests->reserve(bytes);
  if (frame == nullptr) {
    return false;
  }
  std::memset(frame->payload() + (length & ~7u), 0, padded(length) - (length & ~7u));
  const auto bit = static_cast<uint16_t>(1u << segment);
  if (!gather(flow, msg, offset, length, frame->payload())) {
    end_message(flow, msg, Status::kHostReadFailed);
    return true;
  }
  const Pair& pair = flow.pair;
  frame->begin(msg.whole ? FrameType::kMessage : FrameType::kSegment, pair.dest_id, flow.dest_id);
  frame->length = static_cast<uint16_t>(length);
  frame->place = static_cast<uint8_t>(flow.place(msg));
  frame->segment = static_cast<uint8_t>(segment);
  frame->segments = msg.segments;
  frame->ssize = static_cast<uint16_t>(ssize);
  frame->address = msg.index | static_cast<uint64_t>(pair.rings[kTxRing].started_us) << 32;
  flow.way->requests->commit(frame, bytes);
  flow.way->requests->publish();
  ++core_.counts.tx_packets;
  msg.unsent = static_cast<uint16_t>(msg.unsent & ~bit);
  msg.open |= bit;
  msg.since_ns = core_.now_ns;
  return true;
}

void TxEngine::send_due() {
  sending_.swap(due_);  // what is sent now may have to be sent again
  for (const Due& due : sending_) {
    if (due.msg == nullptr) {
      start_waiting(*due.flow);
    }
    if (due.msg == nullptr ? !due.flow->waiting.empty() : send_again(*due.flow, *due.msg)) {
      due_.push_back(due);
    }
  }
  sending_.clear();
}

/// Send what is unsent of a message, as far as it may be sent now. @return whether something is
/// left to be sent later.
bool TxEngine::send_again(Flow& flow, TxMsg& msg) {
  const auto unsent = [&msg] { return msg.state == TxMsg::kFlying && msg.unsent != 0; };
  if (unsent() && msg.retries > 0 && !flow.pair.rings[kTxRing].running()) {
    if (msg.open == 0) {  // it was refused and its ring is being stopped, so it is not sent again
      end_message(flow, msg, Status::kRetryExpired);
    }
    return unsent();
  }
  if (msg.resend_ns <= core_.now_ns) {
    send_unsent(flow, msg);
  }
  flow.way->requests->publish();
  return unsent();
}

void TxEngine::send_unsent(Flow& flow, TxMsg& msg) {
  bool room = true;
  while (room && msg.state == TxMsg::kFlying && msg.unsent != 0) {
    auto segment = static_cast<uint32_t>(std::countr_zero(msg.unsent));
    if (core_.faults.draw(Fault::kReorder)) {
      // Send another segment first. The last one first is the hazard of [S0].
      segment = static_cast<uint32_t>(std::bit_width(msg.unsent)) - 1;
    }
    room = send(flow, msg, segment);
    if (core_.faults.enabled() && core_.faults.below(4) == 0) {
      break;  // let segments of several messages interleave
    }
  }
}

void TxEngine::on_acks(Flow& flow, const InFrame& frame) {
  const uint8_t* const acks = frame.payload();
  for (uint32_t at = 0; at + sizeof(Ack) <= frame.length; at += sizeof(Ack)) {
    Ack ack;
    std::memcpy(&ack, acks + at, sizeof(ack));  // read once: the partner may overwrite it
    answered(flow, ack);
  }
}

void TxEngine::answered(Flow& flow, const Ack& ack) {
  TxMsg& msg = flow.msgs[ack.place];
  const auto bit = static_cast<uint16_t>(1u << ack.segment());
  if (msg.state == TxMsg::kFree || (msg.open & bit) == 0 || msg.segments == TxMsg::kRun) {
    return;  // answers nothing that is in flight
  }
  msg.open = static_cast<uint16_t>(msg.open & ~bit);
  if (msg.rests()) {
    if (msg.open == 0) {
      msg.since_ns = std::min(msg.since_ns, core_.now_ns);
    }
    return;
  }
  switch (ack.answer()) {
    case Answer::kDone:
      if (msg.open == 0 && msg.unsent == 0) {
        end_message(flow, msg, Status::kOk);
      }
      return;
    case Answer::kRetry:
      refused(flow, msg, bit);
      return;
    default:
      end_message(flow, msg, Status::kErrorResponse);
  }
}

void TxEngine::refused(Flow& flow, TxMsg& msg, uint16_t bit) {
  ++core_.counts.tx_retries;
  const uint32_t retries = flow.count_retry(msg);
  const uint32_t limit = core_.timers.retry_limit;
  if ((limit != 0 && retries >= limit) || !flow.pair.rings[kTxRing].running()) {
    end_message(flow, msg, Status::kRetryExpired);
    return;
  }
  if (msg.unsent == 0) {
    send_later(flow, msg);
  }
  msg.unsent |= bit;
  msg.resend_ns = core_.now_ns + core_.timers.retry_ns;
}

void TxEngine::end_message(Flow& flow, TxMsg& msg, Status status) {
  if (msg.pull_at != 0) {
    runs_->revoke(flow, msg);
  }
  if (msg.segments == TxMsg::kRun) {
    runs_->end(flow, msg, status);
  } else {
    Ring& ring = flow.pair.rings[kTxRing];
    core_.complete_tx(ring, msg.desc.cookie, msg.index, status, msg.retries, units_of(msg.desc));
    --ring.outstanding;
    flow.pair.no_flight -= msg.segments > 1 ? 1 : 0;
  }
  contexts_used_ -= msg.segments > 1 ? 1 : 0;
  const bool touched = msg.open != 0 || begun(msg);
  const bool refused_whole =
      status == Status::kRetryExpired && msg.open == 0 && (msg.whole || msg.segments == 1);
  if (status == Status::kOk || !touched || refused_whole) {
    msg.unsent = 0;
    rest_over(flow, msg);
    return;
  }
  rest(flow.pair, msg);
  const bool expired = status == Status::kResponseTimeout || msg.open == 0;
  msg.since_ns =
      expired ? core_.now_ns : std::max(core_.now_ns, msg.since_ns + core_.timers.response_ns);
}

void TxEngine::check_timers() {
  const uint64_t response_ns = core_.timers.response_ns;
  if (core_.now_ns < timers_due_ns_ && response_ns == timers_response_ns_) {
    return;
  }
  // Messages sent from now on cannot time out before this.
  timers_due_ns_ = core_.now_ns + response_ns;
  timers_response_ns_ = response_ns;
  core_.each_flow(
      [this](Flow& flow) { flow.each_message([&](TxMsg& msg) { check_timer(flow, msg); }); });
}

void TxEngine::check_timer(Flow& flow, TxMsg& msg) {
  const uint64_t response_ns = core_.timers.response_ns;
  timers_due_ns_ = std::min(timers_due_ns_, msg.since_ns + response_ns);
  if (msg.rests()) {
    // A receiver may be late in giving the message up.
    if (core_.now_ns > msg.since_ns && core_.now_ns - msg.since_ns > latest_ns(2 * response_ns)) {
      rest_over(flow, msg);
    } else {
      find_resting_place(flow.pair, msg);
    }
  } else if (msg.open != 0) {
    if (core_.late(flow, kTxRing, msg.since_ns)) {
      ++core_.counts.tx_timeouts;
      end_message(flow, msg, Status::kResponseTimeout);
    }
  } else if (core_.now_ns - msg.since_ns > response_ns) {
    const bool stops = !flow.pair.rings[kTxRing].running();
    // The receiver gives up a message whose next segment does not come.
    if (!core_.link_up || stops || begun(msg)) {
      end_message(flow, msg, core_.link_up && stops ? Status::kFlushed : Status::kLinkDown);
    }
  }
}

void TxEngine::lose(Flow& flow) {
  flush_waiting(flow, Status::kLinkDown);
  std::erase_if(due_, [&](const Due& due) { return due.flow == &flow; });
  flow.each_message([&](TxMsg& msg) {
    if (msg.state == TxMsg::kFlying) {
      msg.pull_at = 0;  // the ring of frames is gone
      end_message(flow, msg, msg.unsent == 0 ? Status::kResponseTimeout : Status::kLinkDown);
    }
    if (msg.rests()) {
      rest_over(flow, msg);  // the old partner can answer no more
    }
  });
}

void TxEngine::finish_unsent(Ring& ring, const regs::TxDesc& desc, Status status) {
  const uint32_t index = ring.head;
  if (is_skip(desc)) {
    ++ring.head;
    return;
  }
  ring.head += std::min(units_of(desc), ring.posted());
  ring.next_slot += Control::pushed.get(desc.control);
  core_.complete_tx(ring, desc.cookie, index, status);
}

void TxEngine::flush_posted(Ring& ring, Status status) {
  while (ring.posted() > 0) {
    finish_unsent(ring, ring.fetch<regs::TxDesc>(ring.head), status);
  }
}

void TxEngine::forget(Pair& pair) {
  std::erase_if(due_, [&pair](const Due& due) { return &due.flow->pair == &pair; });
  pair.no_flight = pair.waiting;  // the ring's entries count no more, but for places that are kept
  const auto forget = [this, &pair](Flow& flow, TxMsg& msg) {
    if (msg.state != TxMsg::kFlying) {
      pair.no_flight -= msg.state == TxMsg::kKept && msg.segments == 1 ? 1 : 0;
      return;
    }
    if (msg.pull_at != 0) {
      runs_->revoke(flow, msg);
    }
    contexts_used_ -= msg.segments > 1 ? 1 : 0;
    rest(pair, msg);
    msg.since_ns = core_.now_ns + core_.timers.response_ns;
  };
  core_.each_flow(
      [&](Flow& flow) {
        drop_waiting(flow);
        flow.open_all();
        flow.each_message([&](TxMsg& msg) { forget(flow, msg); });
      },
      &pair);
}

}  // namespace rio::model
