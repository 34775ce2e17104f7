// Long messages between processes: the receiver copies them once, straight out of the sender's
// memory, as many at a time as there are.
#include <algorithm>

#include "fpga/model/detail/copy.hpp"
#include "fpga/model/detail/rx_engine.hpp"

namespace rio::model {
namespace {

using regs::Status;

/// Messages that are pulled at once. More would save little of the system call, and what has come
/// would wait for the rest before anybody can answer it.
constexpr uint32_t kPullsMax = kPullPartsMax;
constexpr uint32_t kFull = regs::kSegmentBytesMax;

/// Messages that a frame tells of. @return 0: none, or more than there may be.
[[nodiscard]] uint32_t parts_of(const InFrame& frame) {
  const uint32_t parts = frame.length / sizeof(PullPart);
  return parts <= kPullPartsMax && frame_bytes(frame.length) <= frame.bytes ? parts : 0;
}

/// Read once: others may write there.
[[nodiscard]] PullPart part_of(const InFrame& frame, uint32_t index) {
  const uint8_t* const at = frame.payload() + index * sizeof(PullPart);
  return {pinned(load64(at)), static_cast<uint32_t>(pinned(load64(at + 8))), 0};
}

}  // namespace

bool RxEngine::on_pull(Puller* puller, const InFrame& frame) {
  const uint32_t parts = parts_of(frame);
  const bool first = runs_.empty();
  if (first ? !responder_.ready_for(frame, kAnswersMax)
            : runs_.size() == kRunsMax || frame.source != pulling_.source ||
                  frame.dest != pulling_.dest || run_messages_ + parts > kPullsMax) {
    return false;
  }
  if (first) {
    pulling_ = frame;
    run_messages_ = 0;
  }
  run_messages_ += parts;
  Run& run = runs_.emplace_back(Run{frame.at, frame.place, 0, Answer::kError});
  if (puller != nullptr) {
    take_run(frame, *puller, run);
  }
  return true;
}

/// What may land in the same rings, or takes much room for its answer, waits.
bool RxEngine::ends_runs(const InFrame& frame) {
  if (frame.type == FrameType::kPull) {
    return false;
  }
  return frame.type != FrameType::kMessage || frame.mbox() < regs::kMultiMailboxes ||
         !responder_.ready_for(pulling_, kAnswersMax);
}

void RxEngine::end_runs(Puller* puller) {
  if (!pulls_.empty()) {
    end_pulls(*puller);
  }
  for (const Run& run : runs_) {
    this->count(run.answer);
    Frame* const answer = responder_.begin(pulling_, FrameType::kPulled, 0);
    if (answer == nullptr) {
      break;  // a reader that takes room back that it gave: its answers vanish
    }
    answer->op = static_cast<uint8_t>(run.answer);
    answer->place = run.place;
    answer->ssize = run.taken;
    responder_.send(answer);
  }
  runs_.clear();
}

/// One message after the other, as if each came when the one before was answered.
void RxEngine::take_run(const InFrame& frame, Puller& puller, Run& run) {
  const uint32_t parts = parts_of(frame);
  InFrame message = frame;
  message.ssize = kFull;
  run.answer = parts != 0 ? Answer::kDone : Answer::kError;
  Pair* const pair = target(frame);
  uint32_t i = pair != nullptr && parts != 0 ? take_entries(frame, parts, *pair, run) : 0;
  for (; i < parts && run.answer == Answer::kDone; ++i) {
    const PullPart part = part_of(frame, i);
    const uint32_t length = part.length;
    ++core_.counts.rx_packets;
    if (length - 1 >= regs::kMessageBytesMax) {
      run.answer = Answer::kError;
      return;
    }
    message.address = part.address;
    message.length = static_cast<uint16_t>(length);
    message.segments = static_cast<uint8_t>((length + kFull - 1) / kFull);
    Pull pull;
    pull.run = &run;
    run.answer =
        !sane_whole(message) ? Answer::kError : admit(message, pair, padded(length), &pull.context);
    if (run.answer == Answer::kDone) {
      PullPiece piece{};
      place_pull(message, puller, pull, &piece);
    }
  }
}

/// The short way: those that a dedicated ring has entries for, as admit_dedicated() wants them, and
/// that land in one piece. @return how many; admit() has to look at the next.
uint32_t RxEngine::take_entries(const InFrame& frame, uint32_t parts, Pair& pair, Run& run) {
  if (core_.faults.enabled() || frame.mbox() >= regs::kMultiMailboxes) {
    return 0;
  }
  const int number = dedicated_ring(pair, frame);
  Ring* const ring = number < 0 ? nullptr : &pair.rings[number];
  if (ring == nullptr || !ring->running() || ring->held) {
    return 0;
  }
  parts = std::min(parts, core_.look_at_tail(pair, static_cast<uint32_t>(number)));
  const uint64_t addr_mask = (1ull << core_.config.dedicated_addr_log2) - 1;
  const uint32_t size_mask = (1u << core_.config.dedicated_size_log2) - 1;
  const bool full = core_.config.quirk_last_full_256;
  uint32_t taken = 0;
  for (; taken < parts; ++taken) {
    const PullPart part = part_of(frame, taken);
    regs::DedicatedDesc entry;
    std::memcpy(&entry, ring->entry(ring->head, 4), sizeof(entry));
    const uint32_t extent = full ? (part.length + kFull - 1) & ~(kFull - 1) : padded(part.length);
    if (part.length - 1 >= regs::kMessageBytesMax || entry.size != padded(part.length) ||
        (entry.size & size_mask) != 0 || (entry.addr & addr_mask) != 0) {
      break;
    }
    uint8_t* const to = core_.host.writable(entry.addr, extent);
    if (to == nullptr) {
      break;
    }
    if (extent != part.length) {
      std::memset(to + part.length, 0, extent - part.length);
    }
    Pull& pull = pulls_.emplace_back();
    pull.run = &run;
    pull.context.pair = &pair;
    pull.context.ring = static_cast<uint8_t>(number);
    pull.context.index = ring->head;
    pull.context.cookie = entry.cookie;
    pieces_.push_back({to, part.address, part.length});
    ++ring->head;
  }
  core_.counts.rx_packets += taken;
  return taken;
}

void RxEngine::place_pull(const InFrame& frame, Puller& puller, Pull& pull, PullPiece* piece) {
  const uint32_t bytes = padded(frame.length);
  const uint32_t last = (frame.segments - 1u) * kFull;
  const uint32_t extent = core_.config.quirk_last_full_256 ? last + kFull : bytes;
  uint8_t* const to = core_.host.writable(pull.context.addr, extent);
  *piece = {to, frame.address, frame.length};
  if (to != nullptr) [[likely]] {
    if (extent != frame.length) {
      std::memset(to + frame.length, 0, extent - frame.length);
    }
    pulls_.push_back(pull);
    pieces_.push_back(*piece);
    return;
  }
  // Not in one piece: it lands bit by bit, behind those before it.
  end_pulls(puller);
  alignas(Frame) uint8_t copy[sizeof(Frame) + regs::kMessageBytesMax] = {};
  piece->to = copy + sizeof(Frame);
  const bool came = puller.pull({piece, 1}) == frame.length && is_pull(pull.run->at);
  if (came) {
    InFrame landing = frame;
    landing.at = copy;
    land_whole(pull.context, landing);
  }
  end_pull(pull, frame.length, came);
}

void RxEngine::end_pull(const Pull& pull, uint32_t len, bool came) {
  complete(pull.context, came ? padded(len) : 0, came ? Status::kOk : Status::kReceiveTimeout);
  if (came) {
    ++pull.run->taken;
  } else {
    pull.run->answer = Answer::kError;
  }
}

void RxEngine::end_pulls(Puller& puller) {
  uint64_t pulled = pieces_.empty() ? 0 : puller.pull(pieces_);
  const Run* run = nullptr;
  bool valid = false;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const uint32_t len = pieces_[i].len_bytes;
    if (pulls_[i].run != run) {
      run = pulls_[i].run;
      valid = is_pull(run->at);
    }
    const bool came = pulled >= len && valid;
    pulled = pulled >= len ? pulled - len : 0;
    end_pull(pulls_[i], len, came);
  }
  pulls_.clear();
  pieces_.clear();
}

}  // namespace rio::model
