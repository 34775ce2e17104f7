#include "fpga/model/fast/tx_pull.hpp"

#include <algorithm>

#include "fpga/model/reference/tx_desc.hpp"

namespace rio::model {
namespace {

using Control = regs::tx_desc::Control;
using regs::Status;

/// Shortest first message of a run: shorter messages pass through the ring faster than one system
/// call takes.
constexpr uint32_t kFirstBytesMin = 2048;
/// Shortest run for which pulling is faster than the ring. It is shorter for ordered messages
/// (kOrderedRunMin), which in the ring wait for each other's answers.
constexpr uint32_t kRunMin = 4;
constexpr uint32_t kOrderedRunMin = 2;
/// Most bytes that a kPull frame carries: with a filler before it, it fits into the 64 KiB ring
/// between two processes.
constexpr uint32_t kBehindMax = 30 * 1024;

[[nodiscard]] bool may_be_pulled(const regs::TxDesc& desc) {
  const uint32_t control = desc.control;
  return Control::op.get(control) == static_cast<uint32_t>(regs::TxOp::kMessage) &&
         Control::ssize.get(control) == kSsize256 && Control::inline_.get(control) == 0 &&
         Control::units.get(control) == 0 && Control::pushed.get(control) == 0 &&
         Control::addrs.get(control) == 0 && Control::mbox.get(control) < regs::kMultiMailboxes &&
         Control::prio.get(control) <= 2;
}

/// Whether the partner can read this process's memory.
[[nodiscard]] bool pulls(const Flow& flow) {
  return flow.way->pulls != nullptr && flow.way->pulls->load(std::memory_order_relaxed) != 0;
}

/// Count the messages of a run that fit into one frame with their bytes; the next ones follow after
/// the answer. @param bytes set to the padded length of these messages. @return how many, at least
/// one.
[[nodiscard]] uint32_t fit_behind(const PullRun& run, uint32_t* bytes) {
  uint32_t count = 0;
  uint32_t sum = 0;
  for (uint32_t i = run.done; i < run.count; ++i, ++count) {
    const uint32_t next = sum + padded(run.messages[i].length);
    if (count != 0 && next + (count + 1) * sizeof(PullPart) > kBehindMax) {
      break;
    }
    sum = next;
  }
  *bytes = sum;
  return count;
}

}  // namespace

uint32_t TxPull::launch(Pair& pair, Ring& ring, uint32_t count) {
  const auto desc = ring.fetch<regs::TxDesc>(ring.head);
  if (count < kOrderedRunMin || desc.length < kFirstBytesMin || !may_be_pulled(desc)) {
    return 0;
  }
  Flow* const flow = core_.flow(pair, desc.dest_id);
  const uint32_t mbox = Control::mbox.get(desc.control);
  const bool ordered = Control::order.get(desc.control) != 0;
  if (flow == nullptr || flow->way->pulls == nullptr || !flow->waiting.empty() ||
      flow->flies(mbox) || tx_.contexts_full()) {
    return 0;
  }
  // If the partner cannot pull, a run still helps ordered messages: they need not wait for each
  // other's answers.
  if (!pulls(*flow) && !(ordered && flow->way->takes_bytes_behind)) {
    return 0;
  }
  const int letter = tx_.free_letter(*flow, mbox, true);
  if (letter < 0) {
    return 0;
  }
  if (flow->runs[mbox] == nullptr) {
    flow->runs[mbox] = std::make_unique<PullRun>();
  }
  const uint32_t found = collect(ring, desc, count, *flow->runs[mbox]);
  if (found < (ordered ? kOrderedRunMin : kRunMin)) {
    return 0;
  }
  const uint32_t place = place_of(mbox, static_cast<uint32_t>(letter));
  TxMsg& msg = tx_.begin(*flow, place, desc, ring.head, TxMsg::kRun, true);
  ring.outstanding += found;
  pair.no_flight += found;
  ring.head += found;
  if (!send(*flow, msg)) {
    tx_.send_later(*flow, msg);
  }
  return found;
}

/// Collect the messages with the same control word and destination as the first one, whose memory
/// this card may read.
/// @return how many.
uint32_t TxPull::collect(const Ring& ring, const regs::TxDesc& first, uint32_t count,
                         PullRun& run) {
  run.index = ring.head;
  run.count = 0;
  run.done = 0;
  for (const uint32_t end = std::min(count, kPullPartsMax); run.count < end; ++run.count) {
    const auto desc = ring.fetch<regs::TxDesc>(ring.head + run.count);
    if (desc.control != first.control || desc.dest_id != first.dest_id ||
        desc.length - 1 >= regs::kMessageBytesMax || (desc.addr & kTxUnaligned) != 0 ||
        core_.host.readable(desc.addr, desc.length) == nullptr) {
      break;
    }
    run.messages[run.count] = {desc.addr, desc.length, desc.cookie};
  }
  return run.count;
}

bool TxPull::send(Flow& flow, TxMsg& msg) {
  const PullRun& run = flow.run_of(msg);
  const bool behind = !pulls(flow) && flow.way->takes_bytes_behind;
  uint32_t length = 0;
  const uint32_t left = behind ? fit_behind(run, &length) : run.count - run.done;
  length += static_cast<uint32_t>(left * sizeof(PullPart));
  Frame* const frame = flow.way->requests->reserve(frame_bytes(length));
  if (frame == nullptr) {
    return false;
  }
  if (!fill(run, left, behind, frame->payload())) {
    tx_.end_message(flow, msg, Status::kHostReadFailed);
    return true;
  }
  frame->begin(FrameType::kPull, flow.pair.dest_id, flow.dest_id);
  frame->op = behind ? kBytesBehind : 0;
  frame->segments = static_cast<uint8_t>(left);
  frame->length = static_cast<uint16_t>(length);
  frame->place = static_cast<uint8_t>(flow.place(msg));
  frame->ssize = regs::kSegmentBytesMax;
  msg.pull_at = flow.way->requests->tail() | 1;
  flow.way->requests->commit(frame, frame_bytes(length));  // published with later frames
  core_.counts.tx_packets += left;
  msg.unsent = 0;
  msg.open = 1;
  msg.since_ns = core_.now_ns;
  return true;
}

/// Write the parts of the next messages. @param behind also write their bytes. @return false: this
/// card may not read one of them.
bool TxPull::fill(const PullRun& run, uint32_t count, bool behind, uint8_t* payload) {
  uint8_t* to = payload;
  // offset of the bytes behind the parts
  auto at = static_cast<uint32_t>(count * sizeof(PullPart));
  for (uint32_t i = run.done; i < run.done + count; ++i, to += sizeof(PullPart)) {
    const PullRun::Message& message = run.messages[i];
    // The partner may read only memory that this card may read.
    const uint8_t* const bytes = core_.host.readable(message.addr, message.length);
    if (bytes == nullptr) {
      return false;
    }
    PullPart part = {reinterpret_cast<uintptr_t>(bytes), message.length, 0};
    if (behind) {
      part.address = at;
      std::memcpy(payload + at, bytes, message.length);
      at += padded(message.length);
    }
    std::memcpy(to, &part, sizeof(part));
  }
  return true;
}

void TxPull::complete(Flow& flow, const TxMsg& msg, uint32_t count, Status status) {
  PullRun& run = flow.run_of(msg);
  Ring& ring = flow.pair.rings[kTxRing];
  for (const uint32_t end = run.done + count; run.done < end; ++run.done) {
    core_.complete_tx(ring, run.messages[run.done].cookie, run.index + run.done, status,
                      msg.retries);
  }
  ring.outstanding -= count;
  flow.pair.no_flight -= count;
}

void TxPull::end(Flow& flow, const TxMsg& msg, Status status) {
  const PullRun& run = flow.run_of(msg);
  complete(flow, msg, run.count - run.done, status);
}

void TxPull::on_pulled(Flow& flow, const InFrame& frame) {
  TxMsg& msg = flow.msgs[frame.place];
  if (msg.segments != TxMsg::kRun || msg.open == 0 || msg.state == TxMsg::kFree) {
    return;  // answers nothing that is in flight
  }
  const PullRun& run = flow.run_of(msg);
  const uint32_t done = frame.ssize;
  if (msg.rests()) {
    msg.open = 0;
    msg.since_ns = std::min(msg.since_ns, core_.now_ns);
    return;
  }
  if (done > run.count - run.done) {
    return;
  }
  msg.open = 0;
  msg.pull_at = 0;
  complete(flow, msg, done, Status::kOk);
  msg.retries = done != 0 && run.done != run.count ? uint8_t{0} : msg.retries;
  const auto answer = static_cast<Answer>(frame.op);
  if (run.done == run.count) {
    tx_.end_message(flow, msg, Status::kOk);
  } else if (answer == Answer::kRetry) {
    tx_.refused(flow, msg, 1);
  } else if (answer == Answer::kError) {
    tx_.end_message(flow, msg, Status::kErrorResponse);
  } else if (!flow.pair.rings[kTxRing].running()) {
    tx_.end_message(flow, msg, Status::kRetryExpired);
  } else {  // the next message was not in the frame
    msg.unsent = 1;
    msg.resend_ns = 0;
    tx_.send_later(flow, msg);
  }
}

void TxPull::revoke(const Flow& flow, TxMsg& msg) {
  if (msg.open != 0) {
    flow.way->requests->revoke(msg.pull_at & ~1u);
  }
  msg.pull_at = 0;
}

}  // namespace rio::model
