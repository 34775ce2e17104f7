#include "fpga/model/fast/tx_pull.hpp"

#include <algorithm>

#include "fpga/model/fast/plain.hpp"
#include "fpga/model/reference/tx_desc.hpp"

namespace rio::model {
namespace {

using Control = regs::tx_desc::Control;
using regs::Status;

/// Shortest first message of a run that is pulled: shorter messages pass through the ring faster
/// than one system call takes. It is shorter for ordered messages, which in the ring wait for each
/// other's answers.
constexpr uint32_t kFirstBytesMin = regs::kMessageBytesMax;
constexpr uint32_t kOrderedFirstBytesMin = 2048;
/// Shortest run for which pulling is faster than the ring. It is shorter for ordered messages
/// (kOrderedRunMin), which in the ring wait for each other's answers.
constexpr uint32_t kRunMin = 4;
constexpr uint32_t kOrderedRunMin = 2;
/// Most bytes that a kPull frame carries: with a filler before it, it fits into the 64 KiB ring
/// between two processes.
constexpr uint32_t kBehindMax = 30 * 1024;
/// Most bytes of a run whose bytes go along although no order demands it: a few such runs fit into
/// the ring, and the reader can begin with one while the next is written.
constexpr uint32_t kWithBytesMax = 8 * 1024;

[[nodiscard]] bool may_be_pulled(const regs::TxDesc& desc) {
  const uint32_t control = desc.control;
  return Control::op.get(control) == static_cast<uint32_t>(regs::TxOp::kMessage) &&
         Control::ssize.get(control) == kSsize256 && Control::inline_.get(control) == 0 &&
         Control::units.get(control) == 0 && Control::pushed.get(control) == 0 &&
         Control::addrs.get(control) == 0 && Control::mbox.get(control) < regs::kMultiMailboxes &&
         Control::prio.get(control) <= 2;
}

/// Most bytes of a run whose bytes the partner has mapped: it answers when it has copied all.
constexpr uint32_t kMappedBytesMax = 32 * 1024;

/// Whether the partner has mapped these bytes of this process.
[[nodiscard]] bool maps(const Flow& flow, const uint8_t* bytes, uint32_t length) {
  Windows* const mapped = flow.way->mapped;
  return mapped != nullptr && bytes != nullptr &&
         mapped->find(reinterpret_cast<uintptr_t>(bytes), length) != nullptr;
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
  for (const uint32_t most = std::min(run.left(), kPullPartsMax); count < most; ++count) {
    const uint32_t next = sum + padded(run.at(count).length);
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
  const bool ordered = Control::order.get(desc.control) != 0;
  // An ordered message of any length may join a run: it would wait for the end of that run, and all
  // behind it in the ring would wait, too.
  if ((desc.length < kFirstBytesMin && !ordered) || !may_be_pulled(desc)) {
    return 0;
  }
  Flow* const flow = core_.flow(pair, desc.dest_id);
  const uint32_t mbox = Control::mbox.get(desc.control);
  if (flow == nullptr || flow->way->pulls == nullptr || !flow->waiting.empty()) {
    return 0;
  }
  if (flow->flies(mbox)) {
    return append(pair, ring, *flow, desc, count);
  }
  if (count < kOrderedRunMin || (ordered && desc.length < kOrderedFirstBytesMin) ||
      tx_.contexts_full()) {
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
  const uint32_t place = place_of(mbox, static_cast<uint32_t>(letter));
  PullRun& run = run_at(*flow, place);
  run.begin(desc.control, false);
  const uint32_t found = collect(ring, desc, count, ~0u, 1, run);
  return found < (ordered ? kOrderedRunMin : kRunMin) ? 0 : begin(*flow, place, desc, ring, found);
}

uint32_t TxPull::launch_with_bytes(Pair& pair, Ring& ring, uint32_t count) {
  if (count < kOrderedRunMin) {
    return 0;
  }
  const auto desc = ring.fetch<regs::TxDesc>(ring.head);
  if (desc.length <= regs::kSegmentBytesMax || !may_be_pulled(desc) ||
      Control::order.get(desc.control) != 0) {
    return 0;
  }
  Flow* const flow = core_.flow(pair, desc.dest_id);
  if (flow == nullptr || !flow->way->takes_bytes_behind || !flow->waiting.empty() ||
      tx_.contexts_full()) {
    return 0;
  }
  const uint32_t mbox = Control::mbox.get(desc.control);
  const uint32_t letter = plain::letter_for_several(flow->busy, mbox);
  if (letter >= core_.config.letters) {
    return 0;
  }
  const uint32_t place = place_of(mbox, letter);
  PullRun& run = run_at(*flow, place);
  run.begin(desc.control, true);
  const bool mapped = desc.length >= plain::kMappedBytesMin &&
                      maps(*flow, core_.host.readable(desc.addr, desc.length), desc.length);
  const uint32_t found = collect(ring, desc, count, mapped ? kMappedBytesMax : kWithBytesMax,
                                 regs::kSegmentBytesMax + 1, run);
  if (found < kOrderedRunMin ||
      !flow->way->requests->fits(frame_bytes((mapped ? 0 : kWithBytesMax) +
                                             found * static_cast<uint32_t>(sizeof(PullPart))))) {
    return 0;
  }
  return begin(*flow, place, desc, ring, found);
}

/// Send the messages that were collected into a run. @return count.
uint32_t TxPull::begin(Flow& flow, uint32_t place, const regs::TxDesc& first, Ring& ring,
                       uint32_t count) {
  TxMsg& msg = tx_.begin(flow, place, first, ring.head, TxMsg::kRun, true);
  take(flow.pair, ring, count);
  if (!send(flow, msg)) {
    tx_.send_later(flow, msg);
    hold_mailbox(flow, flow.run_of(msg));
  }
  return count;
}

/// While a run has messages that no frame has announced, no later one to its mailbox may start.
void TxPull::hold_mailbox(Flow& flow, const PullRun& run) {
  const uint32_t mbox = Control::mbox.get(run.control());
  if (run.left() != run.announced()) {
    flow.shut(mbox, tx_.letter_mask());
  } else {
    flow.open(mbox);
  }
}

/// The run of a letter that is free.
PullRun& TxPull::run_at(Flow& flow, uint32_t place) {
  std::unique_ptr<PullRun>& run = flow.runs[Flow::run_index(place)];
  if (run == nullptr) {
    run = std::make_unique<PullRun>();
  }
  return *run;
}

/// Add messages to the run in flight: they need not wait at the head of the ring, where messages to
/// others would wait behind them. @return as launch().
uint32_t TxPull::append(Pair& pair, Ring& ring, Flow& flow, const regs::TxDesc& desc,
                        uint32_t count) {
  const uint32_t mbox = Control::mbox.get(desc.control);
  PullRun* const run = flow.lone_run(mbox);
  if (run == nullptr || run->behind() || run->control() != desc.control) {
    return 0;
  }
  const uint32_t found = collect(ring, desc, count, ~0u, 1, *run);
  take(pair, ring, found);
  hold_mailbox(flow, *run);
  return found;
}

/// The bytes of a message of a run; null: this card may not read them. Large data is mostly in
/// another window than short messages, whose short ways need theirs.
const uint8_t* TxPull::bytes_of(const PullRun& run, uint64_t addr, uint32_t length) {
  return run.behind() ? core_.host.readable(addr, length) : core_.host.large(addr, length, false);
}

/// Take messages that a run has collected off the ring.
void TxPull::take(Pair& pair, Ring& ring, uint32_t found) {
  ring.outstanding += found;
  pair.no_flight += found;
  ring.head += found;
}

/// Add the messages with the same control word and destination as the first one, whose memory this
/// card may read, to a run.
/// @return how many.
uint32_t TxPull::collect(const Ring& ring, const regs::TxDesc& first, uint32_t count,
                         uint32_t bytes_max, uint32_t length_min, PullRun& run) {
  uint32_t bytes = 0;
  uint32_t found = 0;
  for (; found < count && !run.is_full(); ++found) {
    const uint32_t index = ring.head + found;
    const auto desc = ring.fetch<regs::TxDesc>(index);
    if (desc.control != first.control || desc.dest_id != first.dest_id ||
        desc.length - length_min > regs::kMessageBytesMax - length_min ||
        (desc.addr & kTxUnaligned) != 0 || (bytes += padded(desc.length)) > bytes_max ||
        bytes_of(run, desc.addr, desc.length) == nullptr) {
      break;
    }
    run.add({desc.addr, desc.length, desc.cookie, index});
  }
  return found;
}

bool TxPull::send(Flow& flow, TxMsg& msg) {
  PullRun& run = flow.run_of(msg);
  const bool behind = run.behind() || (!pulls(flow) && flow.way->takes_bytes_behind);
  const uint32_t at_once = std::min(run.left(), kPullPartsMax);
  const bool mapped = (behind || at_once == run.left()) && all_mapped(flow, run, at_once);
  uint32_t length = 0;
  const uint32_t left = mapped   ? at_once
                        : behind ? fit_behind(run, &length)
                                 : std::min(run.left(), flow.way->announced_max);
  length += static_cast<uint32_t>(left * sizeof(PullPart));
  Frame* const frame = flow.way->requests->reserve(frame_bytes(length));
  if (frame == nullptr) {
    return false;
  }
  if (!fill(run, left, behind && !mapped, frame->payload())) {
    tx_.end_message(flow, msg, Status::kHostReadFailed);
    return true;
  }
  frame->begin(FrameType::kPull, flow.pair.dest_id, flow.dest_id);
  frame->op = mapped ? kBytesMapped : behind ? kBytesBehind : 0;
  frame->segments = behind ? static_cast<uint8_t>(left) : uint8_t{0};
  frame->length = static_cast<uint16_t>(length);
  frame->place = static_cast<uint8_t>(flow.place(msg));
  frame->ssize = regs::kSegmentBytesMax;
  msg.pull_at = flow.way->requests->tail() | 1;
  flow.way->requests->commit(frame, frame_bytes(length));  // published with later frames
  core_.counts.tx_packets += left;
  run.announce(left);
  hold_mailbox(flow, run);
  msg.unsent = 0;
  msg.open = 1;
  msg.since_ns = core_.now_ns;
  return true;
}

/// Whether the next messages of a run are so long that their addresses are sent, and the partner
/// has mapped the bytes of all.
bool TxPull::all_mapped(const Flow& flow, const PullRun& run, uint32_t count) {
  if (run.at(0).length < plain::kMappedBytesMin) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const PullRun::Message& message = run.at(i);
    if (!maps(flow, bytes_of(run, message.addr, message.length), message.length)) {
      return false;
    }
  }
  return true;
}

/// Write the parts of the next messages. @param behind also write their bytes. @return false: this
/// card may not read one of them.
bool TxPull::fill(const PullRun& run, uint32_t count, bool behind, uint8_t* payload) {
  uint8_t* to = payload;
  // offset of the bytes behind the parts
  auto at = static_cast<uint32_t>(count * sizeof(PullPart));
  for (uint32_t i = 0; i < count; ++i, to += sizeof(PullPart)) {
    const PullRun::Message& message = run.at(i);
    // The partner may read only memory that this card may read.
    const uint8_t* const bytes = bytes_of(run, message.addr, message.length);
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
  // Messages may have joined the run with others between them in the ring.
  const bool in_a_row = count != 0 && run.at(count - 1).index - run.at(0).index == count - 1;
  if (in_a_row && status == Status::kOk && msg.retries == 0 && ring.cbase != nullptr &&
      !core_.host.posting()) {
    plain::complete_run(ring, run.at(0).index, count, core_.ticks(),
                        [&run](uint32_t number) { return run.at(number).cookie; });
    run.pop(count);
  } else {
    for (uint32_t i = 0; i < count; ++i, run.pop(1)) {
      const PullRun::Message& message = run.at(0);
      core_.complete_tx(ring, message.cookie, message.index, status, msg.retries);
    }
  }
  ring.outstanding -= count;
  flow.pair.no_flight -= count;
}

void TxPull::end(Flow& flow, const TxMsg& msg, Status status) {
  const PullRun& run = flow.run_of(msg);
  complete(flow, msg, run.left(), status);
  hold_mailbox(flow, run);
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
  if (done > run.announced()) {
    return;
  }
  complete(flow, msg, done, Status::kOk);
  msg.retries = done != 0 && run.left() != 0 ? uint8_t{0} : msg.retries;
  const auto answer = static_cast<Answer>(frame.op);
  if (answer == Answer::kDone && run.announced() != 0) {
    msg.since_ns = done != 0 ? core_.now_ns : msg.since_ns;
    return;
  }
  msg.open = 0;
  msg.pull_at = 0;
  if (run.left() == 0) {
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
    if (send(flow, msg)) {
      flow.way->requests->publish();
    } else {
      tx_.send_later(flow, msg);
    }
  }
}

void TxPull::revoke(const Flow& flow, TxMsg& msg) {
  if (msg.open != 0) {
    flow.way->requests->revoke(msg.pull_at & ~1u);
  }
  msg.pull_at = 0;
}

}  // namespace rio::model
