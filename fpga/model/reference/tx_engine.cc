#include "fpga/model/reference/tx_engine.hpp"

#include <algorithm>

#include "fpga/model/copy.hpp"
#include "fpga/model/fast/tx_single.hpp"

namespace rio::model {
namespace {

using regs::Status;
using Control = regs::tx_desc::Control;

constexpr uint32_t kSsize256 = 14;
uint32_t ssize_bytes(uint32_t code) {
  return 1u << (code - 6);
}

uint32_t segments_of(const regs::TxDesc& desc) {
  const uint32_t code = Control::ssize.get(desc.control);
  return (desc.length + ssize_bytes(code) - 1) >> (code - 6);
}

/// All segments of a message, a bit each.
uint16_t all_segments(uint32_t segments) {
  return static_cast<uint16_t>((1u << segments) - 1);
}

}  // namespace

TxEngine::TxEngine(Core& core, Transactions& transactions)
    : core_(core),
      transactions_(transactions),
      letter_mask_(static_cast<uint8_t>((1u << core.config.letters) - 1)),
      tx_unaligned_((1ull << core.config.tx_addr_log2) - 1) {}

void TxEngine::run(Pair& pair) {
  Ring& ring = pair.rings[kTxRing];
  uint32_t count = core_.look_at_tail(pair, kTxRing);
  if (count == 0) {
    return;
  }
  if (!core_.link_up) [[unlikely]] {
    flush_posted(pair, Status::kLinkDown);
    return;
  }
  if (core_.host.posting()) [[unlikely]] {
    count = core_.host.rng().below(count + 1);  // descriptors are fetched late
  }
  const uint32_t end = ring.head + count;
  while (static_cast<int32_t>(end - ring.head) > 0) {
    const uint32_t left = end - ring.head;
    if (!core_.exact &&
        (direct(pair, ring, left) > 0 || (left == 1 && aim(pair) && send_one(pair)) ||
         express(pair, ring, left) > 0 || launch_run(pair, ring, left) > 0)) {
      continue;
    }
    const auto* desc = reinterpret_cast<const regs::TxDesc*>(ring.entry(ring.head, 5));
    if (!launch(pair, ring, *desc)) {
      break;
    }
  }
  if (pair.last_flow != nullptr) {
    pair.last_flow->way->requests->publish();
  }
}

bool TxEngine::send_one(Pair& pair) {
  if (!lane_.writer->has_short_room(frame_bytes(regs::kSegmentBytesMax))) {
    return false;
  }
  const Kick kicked = single();
  if (kicked == Kick::kNot) {
    return false;
  }
  if (kicked == Kick::kSentToSleeper) {
    wake();
  }
  count(pair, 1);
  return true;
}

bool TxEngine::acceptable(const regs::TxDesc& desc, const regs::TxWide* wide) const {
  const uint32_t control = desc.control;
  const uint32_t code = Control::ssize.get(control);
  const uint32_t limit = wide == nullptr ? regs::kInlineBytes : regs::kWideInlineBytes;
  const bool in_desc = Control::inline_.get(control) != 0;
  const uint32_t addrs = Control::addrs.get(control);
  const uint64_t align = (1u << core_.config.tx_addr_log2) - 1;
  if (desc.length == 0 || desc.length > regs::kMessageBytesMax || code < 9 || code > kSsize256 ||
      Control::prio.get(control) > 2 || (in_desc && desc.length > limit) ||
      (!in_desc && (desc.addr & align) != 0) || segments_of(desc) > regs::kSegmentsMax ||
      (segments_of(desc) > 1 && Control::mbox.get(control) >= regs::kMultiMailboxes)) {
    return false;
  }
  if (addrs == 0) {
    return in_desc || wide == nullptr;
  }
  if (wide == nullptr || in_desc || addrs == 1 || addrs > regs::kWideAddrs) {
    return false;
  }
  // Pieces: all but the last are multiples of 8, and together they are the message.
  const uint64_t addr[] = {desc.addr, wide->addr1, wide->addr2, wide->addr3};
  const uint64_t len[] = {desc.aux & 0xFFFFFFFFu, wide->len1, wide->len2, wide->len3};
  uint64_t total = 0;
  for (uint32_t i = 0; i < addrs; ++i) {
    total += len[i];
    if ((addr[i] & align) != 0 || len[i] == 0 || (i + 1 < addrs && (len[i] & 7) != 0)) {
      return false;
    }
  }
  return total == desc.length;
}

bool TxEngine::launch(Pair& pair, Ring& ring, const regs::TxDesc& fetched) {
  const regs::TxDesc desc = fetched;
  if (Control::op.get(desc.control) == static_cast<uint32_t>(regs::TxOp::kDoorbell)) {
    return launch_doorbell(pair, ring, desc);
  }
  const bool is_wide = Control::wide.get(desc.control) != 0;
  regs::TxWide wide{};
  if (is_wide) {
    if (ring.posted() < 2) {
      return false;  // the second half is not posted yet
    }
    std::memcpy(&wide, ring.entry(ring.head + 1, 5), sizeof(wide));
  }
  if (Control::op.get(desc.control) != static_cast<uint32_t>(regs::TxOp::kMessage) ||
      !acceptable(desc, is_wide ? &wide : nullptr)) {
    finish_unsent(pair, ring, desc, Status::kBadDescriptor);
    return true;
  }
  Flow* flow = core_.flow(pair, desc.dest_id);
  if (flow == nullptr) {
    finish_unsent(pair, ring, desc, Status::kLinkDown);
    return true;
  }
  const uint32_t mbox = Control::mbox.get(desc.control);
  const uint32_t segments = segments_of(desc);
  const bool ordered = Control::order.get(desc.control) != 0 && flow->flies(mbox);
  const int letter = free_letter(*flow, mbox, segments > 1);
  if (ordered || letter < 0 || (segments > 1 && contexts_used_ >= core_.config.tx_contexts)) {
    return false;
  }
  const uint32_t place = place_of(mbox, static_cast<uint32_t>(letter));
  TxMsg& msg = flow->msgs[place];
  msg.desc = desc;
  msg.index = ring.head;
  msg.whole = !core_.exact;
  msg.segments = static_cast<uint8_t>(segments);
  msg.unsent = msg.whole ? 1 : all_segments(segments);
  msg.open = 0;
  msg.retries = 0;
  msg.resend_ns = 0;
  msg.since_ns = core_.now_ns;
  if (is_wide) {
    flow->wide_of(place) = wide;
  }
  take_letter(*flow, mbox, static_cast<uint32_t>(letter), segments > 1);
  msg.state = TxMsg::kFlying;
  contexts_used_ += segments > 1 ? 1 : 0;
  ++pair.tx_outstanding;
  ring.head += is_wide ? 2 : 1;
  if (!msg.whole || !send_segment(pair, *flow, msg, place, 0)) {
    due_.push_back({&pair, flow, static_cast<uint16_t>(place)});
  }
  return true;
}

int TxEngine::free_letter(const Flow& flow, uint32_t mbox, bool several) const {
  uint32_t busy = flow.busy[mbox];
  for (uint32_t m = mbox; several && m < regs::kMailboxes; m += regs::kMultiMailboxes) {
    busy |= flow.busy[m];
  }
  const uint32_t free = ~busy & letter_mask_;
  return free == 0 ? -1 : __builtin_ctz(free);
}

void TxEngine::take_letter(Flow& flow, uint32_t mbox, uint32_t letter, bool several) {
  const uint32_t end = several ? regs::kMailboxes : mbox + 1;
  for (uint32_t m = mbox; m < end; m += regs::kMultiMailboxes) {
    flow.busy[m] |= static_cast<uint8_t>(1u << letter);
  }
}

bool TxEngine::gather(const TxMsg& msg, const Flow& flow, uint32_t place, uint32_t offset,
                      uint32_t len, uint8_t* to) {
  if (core_.faults.draw(Fault::kBadAddress)) {
    return false;
  }
  const regs::TxWide* wide = flow.wide == nullptr ? nullptr : &flow.wide[place];
  if (Control::inline_.get(msg.desc.control) != 0) {
    uint8_t bytes[regs::kWideInlineBytes];
    std::memcpy(bytes, &msg.desc.addr, 16);
    if (Control::wide.get(msg.desc.control) != 0) {
      std::memcpy(bytes + 16, wide, 32);
    }
    std::memcpy(to, bytes + offset, len);
    return true;
  }
  const uint32_t addrs = Control::addrs.get(msg.desc.control);
  if (addrs == 0) {
    const uint8_t* bytes = core_.host.readable(msg.desc.addr + offset, len);
    if (bytes == nullptr) {
      return core_.host.read(msg.desc.addr + offset, to, len);
    }
    copy_bytes(to, bytes, len);
    return true;
  }
  const uint64_t addr[] = {msg.desc.addr, wide->addr1, wide->addr2, wide->addr3};
  const uint32_t piece[] = {static_cast<uint32_t>(msg.desc.aux), wide->len1, wide->len2,
                            wide->len3};
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

bool TxEngine::send_segment(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, uint32_t segment) {
  if (msg.segments == TxMsg::kRun) {
    return send_run(pair, flow, msg, place);
  }
  const uint32_t ssize = ssize_bytes(Control::ssize.get(msg.desc.control));
  const uint32_t offset = msg.whole ? 0 : segment * ssize;
  const uint32_t length = msg.whole ? msg.desc.length : std::min(ssize, msg.desc.length - offset);
  const uint32_t bytes = frame_bytes(padded(length));
  Frame* frame = flow.way->requests->reserve(bytes);
  if (frame == nullptr) {
    return false;
  }
  std::memset(frame->payload() + (length & ~7u), 0, padded(length) - (length & ~7u));
  const auto bit = static_cast<uint16_t>(1u << segment);
  if (!gather(msg, flow, place, offset, length, frame->payload())) {
    settle(pair, flow, msg, place, Status::kHostReadFailed);
    return true;
  }
  frame->type = msg.whole ? FrameType::kMessage : FrameType::kSegment;
  frame->source = pair.dest_id;
  frame->dest = flow.dest_id;
  frame->length = static_cast<uint16_t>(length);
  frame->place = static_cast<uint8_t>(place);
  frame->segment = static_cast<uint8_t>(segment);
  frame->segments = msg.segments;
  frame->unused = 0;
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
      if (msg.open == 0) {  // refused, and its ring is being stopped: not sent again
        settle(*due.pair, *due.flow, msg, due.place, Status::kRetryExpired);
      } else {
        due_[kept++] = due;
      }
      continue;
    }
    bool room = msg.resend_ns <= core_.now_ns;
    while (room && msg.state == TxMsg::kFlying && msg.unsent != 0) {
      uint32_t segment = static_cast<uint32_t>(__builtin_ctz(msg.unsent));
      if (core_.faults.draw(Fault::kReorder)) {
        // Any of the others instead: the last one first is the hazard of [S0].
        segment = 31u - static_cast<uint32_t>(__builtin_clz(msg.unsent));
      }
      room = send_segment(*due.pair, *due.flow, msg, due.place, segment);
      if (core_.faults.enabled() && core_.faults.below(4) == 0) {
        break;  // let messages interleave
      }
    }
    due.flow->way->requests->publish();
    if (msg.state == TxMsg::kFlying && msg.unsent != 0) {
      due_[kept++] = due;
    }
  }
  due_.resize(kept);
}

void TxEngine::answered(Pair& pair, Flow& flow, uint32_t place, const Ack& ack) {
  TxMsg& msg = flow.msgs[place];
  const auto bit = static_cast<uint16_t>(1u << ack.segment());
  if (msg.state == TxMsg::kFree || (msg.open & bit) == 0 || msg.segments == TxMsg::kRun) {
    return;  // answers nothing that flies
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
        settle(pair, flow, msg, place, Status::kOk);
      }
      return;
    case Answer::kRetry: {
      ++core_.counts.tx_retries;
      const uint32_t retries = flow.count_retry(place);
      const uint32_t limit = core_.timers.retry_limit;
      if ((limit != 0 && retries >= limit) || !pair.rings[kTxRing].running()) {
        settle(pair, flow, msg, place, Status::kRetryExpired);
        return;
      }
      if (msg.unsent == 0) {
        due_.push_back({&pair, &flow, static_cast<uint16_t>(place)});
      }
      msg.unsent |= bit;
      msg.resend_ns = core_.now_ns + core_.timers.retry_ns;
      return;
    }
    default:
      settle(pair, flow, msg, place, Status::kErrorResponse);
  }
}

void TxEngine::settle(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, Status status) {
  if (msg.pull_at != 0) {
    revoke(flow, msg);
  }
  if (msg.segments == TxMsg::kRun) {
    PullRun& run = *flow.runs[place & 63];
    complete_run(pair, msg, run, run.count - run.done, status);
  } else {
    regs::TxCpl cpl{msg.desc.cookie, msg.index, core_.ticks(), 0};
    core_.complete(pair.rings[kTxRing], &cpl,
                   static_cast<uint32_t>(status) | static_cast<uint32_t>(msg.retries) << 8);
    --pair.tx_outstanding;
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

void TxEngine::rest_over(Flow& flow, TxMsg& msg, uint32_t place) {
  const auto bit = static_cast<uint8_t>(1u << (place >> 6));
  const uint32_t mailbox = place & 63;
  msg.state = TxMsg::kFree;
  if (msg.segments <= 1) {
    flow.busy[mailbox] &= static_cast<uint8_t>(~bit);
    return;
  }
  for (uint32_t m = mailbox; m < regs::kMailboxes; m += regs::kMultiMailboxes) {
    flow.busy[m] &= static_cast<uint8_t>(~bit);
  }
}

void TxEngine::check_timers() {
  const uint64_t response_ns = core_.timers.response_ns;
  if (core_.now_ns < timers_due_ns_ && response_ns == timers_response_ns_) {
    return;
  }
  // What is sent from now on is due later than that.
  timers_due_ns_ = core_.now_ns + response_ns;
  timers_response_ns_ = response_ns;
  for (Pair& pair : core_.pairs) {
    for (auto& [dest, flow] : pair.flows) {
      for (uint32_t place = 0; place < flow->msgs.size(); ++place) {
        TxMsg& msg = flow->msgs[place];
        if (msg.state != TxMsg::kFree) {
          timers_due_ns_ = std::min(timers_due_ns_, msg.since_ns + response_ns);
        }
        if (msg.state == TxMsg::kFlying && msg.open != 0 &&
            core_.late(pair, kTxRing, *flow, msg.since_ns)) {
          ++core_.counts.tx_timeouts;
          settle(pair, *flow, msg, place, Status::kResponseTimeout);
        } else if (msg.state == TxMsg::kFlying && msg.open == 0 &&
                   (!core_.link_up || !pair.rings[kTxRing].running()) &&
                   core_.now_ns - msg.since_ns > core_.timers.response_ns) {
          settle(pair, *flow, msg, place, core_.link_up ? Status::kFlushed : Status::kLinkDown);
        } else if (msg.state == TxMsg::kQuarantine && core_.now_ns > msg.since_ns &&
                   core_.now_ns - msg.since_ns > 2 * core_.timers.response_ns) {
          rest_over(*flow, msg, place);
        }
      }
    }
  }
}

void TxEngine::lose(Pair& pair, Flow& flow) {
  std::erase_if(due_, [&](const Due& due) { return due.flow == &flow; });
  for (uint32_t place = 0; place < flow.msgs.size(); ++place) {
    TxMsg& msg = flow.msgs[place];
    if (msg.state == TxMsg::kFlying) {
      msg.pull_at = 0;  // its ring has gone
      settle(pair, flow, msg, place,
             msg.unsent == 0 ? Status::kResponseTimeout : Status::kLinkDown);
    }
    if (msg.state == TxMsg::kQuarantine) {
      rest_over(flow, msg, place);  // no answer of the old partner can come any more
    }
  }
}

void TxEngine::sent_late(uint64_t time_ns) {
  for (Pair& pair : core_.pairs) {
    for (auto& [dest, flow] : pair.flows) {
      for (TxMsg& msg : flow->msgs) {
        if (msg.state == TxMsg::kFlying && msg.since_ns == time_ns) {
          msg.since_ns = core_.now_ns - 1;  // not what this look stamps
        }
      }
    }
  }
}

void TxEngine::finish_unsent(Pair& pair, Ring& ring, const regs::TxDesc& desc, Status status) {
  static_cast<void>(pair);
  regs::TxCpl cpl{desc.cookie, ring.head, core_.ticks(), 0};
  const bool is_wide = Control::wide.get(desc.control) != 0;
  ring.head += is_wide && ring.posted() >= 2 ? 2 : 1;
  core_.complete(ring, &cpl, static_cast<uint32_t>(status));
}

void TxEngine::flush_posted(Pair& pair, Status status) {
  Ring& ring = pair.rings[kTxRing];
  while (ring.posted() > 0) {
    regs::TxDesc desc;
    std::memcpy(&desc, ring.entry(ring.head, 5), sizeof(desc));
    finish_unsent(pair, ring, desc, status);
  }
}

void TxEngine::begin_stop(Pair& pair) {
  flush_posted(pair, Status::kFlushed);
}

void TxEngine::forget(Pair& pair) {
  std::erase_if(due_, [&](const Due& due) { return due.pair == &pair; });
  for (auto& [dest, flow] : pair.flows) {
    for (TxMsg& msg : flow->msgs) {
      if (msg.state == TxMsg::kFlying) {
        if (msg.pull_at != 0) {
          revoke(*flow, msg);
        }
        contexts_used_ -= msg.segments > 1 ? 1 : 0;
        msg.state = TxMsg::kQuarantine;
        msg.unsent = 0;
        msg.since_ns = core_.now_ns + core_.timers.response_ns;
      }
    }
  }
  pair.tx_outstanding = 0;
}

}  // namespace rio::model
