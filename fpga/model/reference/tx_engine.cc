#include "fpga/model/reference/tx_engine.hpp"

#include <algorithm>
#include <bit>

#include "fpga/model/copy.hpp"
#include "fpga/model/reference/tx_desc.hpp"

namespace rio::model {

using regs::Status;
using Control = regs::tx_desc::Control;

TxEngine::TxEngine(Core& core, Transactions& transactions)
    : core_(core),
      transactions_(transactions),
      letter_mask_(static_cast<uint8_t>((1u << core.config.letters) - 1)) {}

void TxEngine::run(Pair& pair) {
  Ring& ring = pair.rings[kTxRing];
  uint32_t count = fetchable(pair);
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
  const auto desc = ring.fetch<regs::TxDesc>(ring.head);
  if (Control::op.get(desc.control) == static_cast<uint32_t>(regs::TxOp::kDoorbell)) {
    return launch_doorbell(pair, ring, desc);
  }
  const bool is_wide = Control::wide.get(desc.control) != 0;
  regs::TxWide wide{};
  if (is_wide) {
    if (ring.posted() < 2) {
      return false;  // the second half is not posted yet
    }
    wide = ring.fetch<regs::TxWide>(ring.head + 1);
  }
  if (Control::op.get(desc.control) != static_cast<uint32_t>(regs::TxOp::kMessage) ||
      !acceptable(desc, is_wide ? &wide : nullptr)) {
    finish_unsent(ring, desc, Status::kBadDescriptor);
    return true;
  }
  Flow* flow = core_.flow(pair, desc.dest_id);
  if (flow == nullptr) {
    finish_unsent(ring, desc, Status::kLinkDown);
    return true;
  }
  const uint32_t mbox = Control::mbox.get(desc.control);
  const uint32_t segments = segments_of(desc);
  const bool ordered = Control::order.get(desc.control) != 0 && flow->flies(mbox);
  const int letter = free_letter(*flow, mbox, segments > 1);
  if (ordered || letter < 0 || (segments > 1 && contexts_full())) {
    return false;
  }
  const uint32_t place = place_of(mbox, static_cast<uint32_t>(letter));
  TxMsg& msg = begin(*flow, place, desc, ring.head, segments, !core_.exact);
  if (is_wide) {
    flow->wide_of(place) = wide;
  }
  ++ring.outstanding;
  ring.head += is_wide ? 2 : 1;
  if (!msg.whole || !send(pair, *flow, msg, place, 0)) {
    send_later(pair, *flow, place);
  }
  return true;
}

/// Fetch a doorbell: it is a transaction, not a message. @return false: none is free; the ring
/// waits.
bool TxEngine::launch_doorbell(Pair& pair, Ring& ring, const regs::TxDesc& desc) {
  Flow* flow = core_.flow(pair, desc.dest_id);
  if (flow == nullptr || Control::wide.get(desc.control) != 0) {
    finish_unsent(ring, desc, flow == nullptr ? Status::kLinkDown : Status::kBadDescriptor);
    return true;
  }
  Transaction* const doorbell = transactions_.start(*flow);
  if (doorbell == nullptr) {
    return false;
  }
  doorbell->ring = kTxRing;
  doorbell->owner = ring.head;
  doorbell->cookie = desc.cookie;
  doorbell->address = desc.addr & 0xFFFF;
  ++ring.outstanding;
  ++ring.head;
  transactions_.send(pair, *flow, *doorbell);
  return true;
}

void TxEngine::on_end(Pair& pair, const Transaction& doorbell, Status status) {
  Ring& ring = pair.rings[kTxRing];
  core_.complete_tx(ring, doorbell.cookie, doorbell.owner, status, doorbell.retries);
  --ring.outstanding;
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
  flip_letter(flow, msg, place);
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
void TxEngine::flip_letter(Flow& flow, const TxMsg& msg, uint32_t place) {
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

void TxEngine::rest_over(Flow& flow, TxMsg& msg, uint32_t place) {
  msg.state = TxMsg::kFree;
  flip_letter(flow, msg, place);
}

bool TxEngine::gather(const TxMsg& msg, const Flow& flow, uint32_t place, uint32_t offset,
                      uint32_t len, uint8_t* to) {
  if (core_.faults.draw(Fault::kBadAddress)) {
    return false;
  }
  if (Control::inline_.get(msg.desc.control) != 0) {
    uint8_t bytes[regs::kWideInlineBytes];
    std::memcpy(bytes, &msg.desc.addr, 16);
    if (Control::wide.get(msg.desc.control) != 0) {
      std::memcpy(bytes + 16, &flow.wide[place], 32);
    }
    std::memcpy(to, bytes + offset, len);
    return true;
  }
  if (Control::addrs.get(msg.desc.control) != 0) {
    return gather_pieces(msg, flow.wide[place], offset, len, to);
  }
  const uint8_t* bytes = core_.host.readable(msg.desc.addr + offset, len);
  if (bytes == nullptr) {
    return core_.host.read(msg.desc.addr + offset, to, len);
  }
  copy_bytes(to, bytes, len);
  return true;
}

bool TxEngine::gather_pieces(const TxMsg& msg, const regs::TxWide& wide, uint32_t offset,
                             uint32_t len, uint8_t* to) {
  const uint32_t addrs = Control::addrs.get(msg.desc.control);
  const uint64_t addr[] = {msg.desc.addr, wide.addr1, wide.addr2, wide.addr3};
  const uint32_t piece[] = {static_cast<uint32_t>(msg.desc.aux), wide.len1, wide.len2, wide.len3};
  for (uint32_t i = 0; i < addrs && len > 0; ++i) {
    if (offset >= piece[i]) {
      offset -= piece[i];
      continue;
    }
    const uint32_t part = std::min(len, piece[i] - offset);
    if (!core_.host.read(addr[i] + offset, to, part)) {
      return false;
    }
    to += part;
    len -= part;
    offset = 0;
  }
  return true;
}

bool TxEngine::send(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, uint32_t segment) {
  if (msg.segments == TxMsg::kRun) {
    return runs_->send(pair, flow, msg, place);
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
  if (!gather(msg, flow, place, offset, length, frame->payload())) {
    end_message(pair, flow, msg, place, Status::kHostReadFailed);
    return true;
  }
  frame->begin(msg.whole ? FrameType::kMessage : FrameType::kSegment, pair.dest_id, flow.dest_id);
  frame->length = static_cast<uint16_t>(length);
  frame->place = static_cast<uint8_t>(place);
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
  size_t kept = 0;
  for (size_t i = 0; i < due_.size(); ++i) {
    const Due due = due_[i];
    TxMsg& msg = due.flow->msgs[due.place];
    const bool flies = msg.state == TxMsg::kFlying && msg.unsent != 0;
    if (flies && msg.retries > 0 && !due.pair->rings[kTxRing].running()) {
      if (msg.open == 0) {  // it was refused and its ring is being stopped, so it is not sent again
        end_message(*due.pair, *due.flow, msg, due.place, Status::kRetryExpired);
      } else {
        due_[kept++] = due;
      }
      continue;
    }
    if (msg.resend_ns <= core_.now_ns) {
      send_unsent(due, msg);
    }
    due.flow->way->requests->publish();
    if (msg.state == TxMsg::kFlying && msg.unsent != 0) {
      due_[kept++] = due;
    }
  }
  due_.resize(kept);
}

void TxEngine::send_unsent(const Due& due, TxMsg& msg) {
  bool room = true;
  while (room && msg.state == TxMsg::kFlying && msg.unsent != 0) {
    auto segment = static_cast<uint32_t>(std::countr_zero(msg.unsent));
    if (core_.faults.draw(Fault::kReorder)) {
      // Send another segment first. The last one first is the hazard of [S0].
      segment = static_cast<uint32_t>(std::bit_width(msg.unsent)) - 1;
    }
    room = send(*due.pair, *due.flow, msg, due.place, segment);
    if (core_.faults.enabled() && core_.faults.below(4) == 0) {
      break;  // let segments of several messages interleave
    }
  }
}

void TxEngine::on_acks(Pair& pair, Flow& flow, const InFrame& frame) {
  const uint8_t* const acks = frame.payload();
  for (uint32_t at = 0; at + sizeof(Ack) <= frame.length; at += sizeof(Ack)) {
    Ack ack;
    std::memcpy(&ack, acks + at, sizeof(ack));  // read once: the partner may overwrite it
    answered(pair, flow, ack.place, ack);
  }
}

void TxEngine::answered(Pair& pair, Flow& flow, uint32_t place, const Ack& ack) {
  TxMsg& msg = flow.msgs[place];
  const auto bit = static_cast<uint16_t>(1u << ack.segment());
  if (msg.state == TxMsg::kFree || (msg.open & bit) == 0 || msg.segments == TxMsg::kRun) {
    return;  // answers nothing that is in flight
  }
  msg.open = static_cast<uint16_t>(msg.open & ~bit);
  if (msg.state == TxMsg::kQuarantine) {
    if (msg.open == 0) {
      msg.since_ns = std::min(msg.since_ns, core_.now_ns);
    }
    return;
  }
  switch (ack.answer()) {
    case Answer::kDone:
      if (msg.open == 0 && msg.unsent == 0) {
        end_message(pair, flow, msg, place, Status::kOk);
      }
      return;
    case Answer::kRetry:
      refused(pair, flow, msg, place, bit);
      return;
    default:
      end_message(pair, flow, msg, place, Status::kErrorResponse);
  }
}

/// A segment was answered RETRY.
void TxEngine::refused(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, uint16_t bit) {
  ++core_.counts.tx_retries;
  const uint32_t retries = flow.count_retry(place);
  const uint32_t limit = core_.timers.retry_limit;
  if ((limit != 0 && retries >= limit) || !pair.rings[kTxRing].running()) {
    end_message(pair, flow, msg, place, Status::kRetryExpired);
    return;
  }
  if (msg.unsent == 0) {
    send_later(pair, flow, place);
  }
  msg.unsent |= bit;
  msg.resend_ns = core_.now_ns + core_.timers.retry_ns;
}

void TxEngine::end_message(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, Status status) {
  if (msg.pull_at != 0) {
    runs_->revoke(flow, msg);
  }
  if (msg.segments == TxMsg::kRun) {
    runs_->end(pair, flow, msg, place, status);
  } else {
    Ring& ring = pair.rings[kTxRing];
    core_.complete_tx(ring, msg.desc.cookie, msg.index, status, msg.retries);
    --ring.outstanding;
  }
  contexts_used_ -= msg.segments > 1 ? 1 : 0;
  const bool touched = msg.open != 0 || msg.unsent != all_segments(msg.whole ? 1 : msg.segments);
  const bool refused_whole =
      status == Status::kRetryExpired && msg.open == 0 && (msg.whole || msg.segments == 1);
  msg.unsent = 0;
  if (status == Status::kOk || !touched || refused_whole) {
    rest_over(flow, msg, place);
    return;
  }
  msg.state = TxMsg::kQuarantine;
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
  for (Pair& pair : core_.pairs) {
    for (auto& [dest, flow] : pair.flows) {
      for (uint32_t place = 0; place < flow->msgs.size(); ++place) {
        if (flow->msgs[place].state != TxMsg::kFree) {
          check_timer(pair, *flow, place);
        }
      }
    }
  }
}

void TxEngine::check_timer(Pair& pair, Flow& flow, uint32_t place) {
  TxMsg& msg = flow.msgs[place];
  const uint64_t response_ns = core_.timers.response_ns;
  timers_due_ns_ = std::min(timers_due_ns_, msg.since_ns + response_ns);
  if (msg.state == TxMsg::kQuarantine) {
    if (core_.now_ns > msg.since_ns && core_.now_ns - msg.since_ns > 2 * response_ns) {
      rest_over(flow, msg, place);
    }
  } else if (msg.open != 0) {
    if (core_.late(pair, kTxRing, flow, msg.since_ns)) {
      ++core_.counts.tx_timeouts;
      end_message(pair, flow, msg, place, Status::kResponseTimeout);
    }
  } else if ((!core_.link_up || !pair.rings[kTxRing].running()) &&
             core_.now_ns - msg.since_ns > response_ns) {
    end_message(pair, flow, msg, place, core_.link_up ? Status::kFlushed : Status::kLinkDown);
  }
}

void TxEngine::lose(Pair& pair, Flow& flow) {
  std::erase_if(due_, [&](const Due& due) { return due.flow == &flow; });
  for (uint32_t place = 0; place < flow.msgs.size(); ++place) {
    TxMsg& msg = flow.msgs[place];
    if (msg.state == TxMsg::kFlying) {
      msg.pull_at = 0;  // the ring of frames is gone
      end_message(pair, flow, msg, place,
                  msg.unsent == 0 ? Status::kResponseTimeout : Status::kLinkDown);
    }
    if (msg.state == TxMsg::kQuarantine) {
      rest_over(flow, msg, place);  // the old partner can answer no more
    }
  }
}

void TxEngine::sent_late(uint64_t time_ns) {
  for (Pair& pair : core_.pairs) {
    for (auto& [dest, flow] : pair.flows) {
      for (TxMsg& msg : flow->msgs) {
        if (msg.state == TxMsg::kFlying && msg.since_ns == time_ns) {
          msg.since_ns = core_.now_ns - 1;  // differs from the stamp of frames sent from now on
        }
      }
    }
  }
}

void TxEngine::finish_unsent(Ring& ring, const regs::TxDesc& desc, Status status) {
  const uint32_t index = ring.head;
  const bool is_wide = Control::wide.get(desc.control) != 0;
  ring.head += is_wide && ring.posted() >= 2 ? 2 : 1;
  core_.complete_tx(ring, desc.cookie, index, status);
}

void TxEngine::flush_posted(Ring& ring, Status status) {
  while (ring.posted() > 0) {
    finish_unsent(ring, ring.fetch<regs::TxDesc>(ring.head), status);
  }
}

void TxEngine::forget(Pair& pair) {
  std::erase_if(due_, [&](const Due& due) { return due.pair == &pair; });
  for (auto& [dest, flow] : pair.flows) {
    for (TxMsg& msg : flow->msgs) {
      if (msg.state != TxMsg::kFlying) {
        continue;
      }
      if (msg.pull_at != 0) {
        runs_->revoke(*flow, msg);
      }
      contexts_used_ -= msg.segments > 1 ? 1 : 0;
      msg.state = TxMsg::kQuarantine;
      msg.unsent = 0;
      msg.since_ns = core_.now_ns + core_.timers.response_ns;
    }
  }
}

}  // namespace rio::model
