#include "fpga/model/fast/rx_pull.hpp"

#include <algorithm>

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/fast/plain.hpp"

namespace rio::model {
namespace {

using regs::Status;

constexpr uint32_t kFull = regs::kSegmentBytesMax;

/// A puller that copies bytes that this process can read: they are in the ring, behind the parts,
/// or in a window.
class LocalPuller final : public Puller {
 public:
  uint64_t pull(std::span<const PullPiece> pieces) override {
    uint64_t pulled = 0;
    for (const PullPiece& piece : pieces) {
      std::memcpy(piece.to, reinterpret_cast<const uint8_t*>(piece.from), piece.len_bytes);
      pulled += piece.len_bytes;
    }
    return pulled;
  }
};
LocalPuller local_puller;

[[nodiscard]] bool bytes_are_behind(const InFrame& frame) {
  return frame.op == kBytesBehind;
}

[[nodiscard]] bool bytes_are_mapped(const InFrame& frame) {
  return frame.op == kBytesMapped;
}
[[nodiscard]] bool bytes_are_at_hand(const InFrame& frame) {
  return bytes_are_behind(frame) || bytes_are_mapped(frame);
}

/// Number of messages that a frame announces. @return 0: none, or too many.
[[nodiscard]] uint32_t parts_of(const InFrame& frame) {
  const auto room = static_cast<uint32_t>(frame.length / sizeof(PullPart));
  const bool behind = bytes_are_behind(frame);
  const uint32_t parts = behind ? frame.segments : room;
  const uint32_t most = std::min(room, bytes_are_at_hand(frame) ? kPullPartsMax : kAnnouncedMax);
  return parts <= most && frame_bytes(frame.length) <= frame.bytes ? parts : 0;
}

/// Read a part; each word only once, since the sender may overwrite it. If the frame carries the
/// bytes, or they are in a window, the result has their local address, and length 0 if they are not
/// all there. @param windows of the sender; null: none.
[[nodiscard]] PullPart part_of(const InFrame& frame, uint32_t index, Windows* windows) {
  const uint8_t* const at = frame.payload() + index * sizeof(PullPart);
  PullPart part = {pinned(load64(at)), static_cast<uint32_t>(pinned(load64(at + 8))), 0};
  if (bytes_are_behind(frame)) {
    const bool whole = part.address <= frame.length && part.length <= frame.length - part.address;
    part.address += reinterpret_cast<uintptr_t>(frame.payload());
    part.length = whole ? part.length : 0;
  } else if (bytes_are_mapped(frame)) {
    const uint8_t* const bytes =
        windows == nullptr ? nullptr : windows->find(part.address, part.length);
    part.address = reinterpret_cast<uintptr_t>(bytes);
    part.length = bytes != nullptr ? part.length : 0;
  }
  return part;
}

/// An entry of a dedicated ring, read once.
struct Entry {
  uint64_t addr;
  uint32_t size;
  uint32_t cookie;
};
[[nodiscard]] inline Entry entry_at(const uint8_t* at) {
  const uint64_t size_and_cookie = load64(at + offsetof(regs::DedicatedDesc, size));
  return {load64(at + offsetof(regs::DedicatedDesc, addr)), static_cast<uint32_t>(size_and_cookie),
          static_cast<uint32_t>(size_and_cookie >> 32)};
}

}  // namespace

RxPull::RxPull(Core& core, Responder& responder, Admission& admission, RxEngine& rx,
               RxSeveral& several)
    : core_(core), responder_(responder), admission_(admission), rx_(rx), several_(several) {
  runs_.reserve(FrameReader::kHeldMax);  // pulls hold pointers to runs
}

/// Runs must end before a frame that may land in the same rings, or needs much room for its answer.
bool RxPull::ends_runs(FrameReader& reader, const InFrame& frame) {
  if (frame.type == FrameType::kPull) {
    return false;
  }
  return frame.type != FrameType::kMessage || frame.mbox() < regs::kMultiMailboxes ||
         !responder_.ready_for(reader.held()[0].frame, kAnswersMax);
}

void RxPull::pull(const Inbound& in, FrameReader& reader) {
  Puller* const puller = in.puller;
  windows_ = in.windows;
  const std::span<FrameReader::Held> held = reader.held();
  if (!core_.link_up) {
    reader.end_held(held.size());  // lost on the way
    return;
  }
  pulling_ = held[0].frame;
  if (!responder_.ready_for(pulling_, kAnswersMax)) {
    return;
  }
  size_t over = take_held(puller, held);
  if (pull_count_ != 0) {
    end_pulls(bytes_are_at_hand(pulling_) ? local_puller : *puller);
  }
  // A frame that is not taken to its end is over if its bytes did not come: no later message of it
  // may land before the one that did not.
  over += !runs_.empty() && over < held.size() && runs_.back().at == held[over].frame.at &&
                  runs_.back().answer != Answer::kDone
              ? 1
              : 0;
  answer_runs();
  reader.end_held(over);
}

bool RxPull::take_with_bytes(Windows* windows, const InFrame& frame) {
  windows_ = windows;
  if (!responder_.ready_for(frame, kAnswersMax)) {
    return false;
  }
  pulling_ = frame;
  const uint32_t parts = parts_of(frame);
  Run& run = runs_.emplace_back(
      Run{frame.at, frame.place, 0, parts != 0 ? Answer::kDone : Answer::kError, 0, parts});
  if (parts != 0) {
    take_run(frame, local_puller, run);
  }
  if (pull_count_ != 0) {
    end_pulls(local_puller);
  }
  answer_runs();
  return true;
}

/// Take the next messages of held frames that have the same sender and destination. @return frames
/// that are over.
size_t RxPull::take_held(Puller* puller, std::span<FrameReader::Held> held) {
  uint32_t room = kPullsMax;
  size_t over = 0;
  for (; over < held.size() && kPullsMax - room < kPullsEnough; ++over) {
    FrameReader::Held& each = held[over];
    const InFrame& frame = each.frame;
    if (!is_pull(frame.at)) {
      continue;  // revoked
    }
    if (frame.source != pulling_.source || frame.dest != pulling_.dest || frame.op != pulling_.op) {
      break;
    }
    const uint32_t parts = parts_of(frame);
    const uint32_t end = std::min(parts, each.taken + room);
    room -= end - each.taken;
    const bool any = end != each.taken;
    Run& run = runs_.emplace_back(
        Run{frame.at, frame.place, 0, any ? Answer::kDone : Answer::kError, each.taken, end});
    Puller* const from = bytes_are_at_hand(frame) ? &local_puller : puller;
    if (from == nullptr) {
      run.answer = Answer::kError;
    } else if (any) {
      take_run(frame, *from, run);
    }
    each.taken = end;
    if (end != parts && run.answer == Answer::kDone) {
      break;
    }
  }
  return over;
}

void RxPull::answer_runs() {
  for (const Run& run : runs_) {
    core_.count_answer(run.answer);
    Frame* const answer = responder_.begin(pulling_, FrameType::kPulled, 0);
    if (answer == nullptr) {
      break;  // the reader took room back that it had given: drop its answers
    }
    answer->op = static_cast<uint8_t>(run.answer);
    answer->place = run.place;
    answer->ssize = run.taken;
    responder_.send(answer);
  }
  runs_.clear();
}

/// Place the messages of a run one after the other, as if each had arrived after the answer to the
/// one before.
void RxPull::take_run(const InFrame& frame, Puller& puller, Run& run) {
  InFrame message = frame;
  message.ssize = kFull;
  const uint32_t landed = bytes_are_at_hand(frame) ? land_with_bytes(frame, run) : 0;
  run.taken = static_cast<uint16_t>(landed);
  uint32_t i = run.first + landed;
  Pair* const pair = i != run.end ? admission_.target(frame) : nullptr;
  if (landed == 0 && pair != nullptr) {
    i += take_entries(frame, *pair, run);
  }
  for (; i < run.end && run.answer == Answer::kDone; ++i) {
    const PullPart part = part_of(frame, i, windows_);
    const uint32_t length = part.length;
    ++core_.counts.rx_packets;
    if (length - 1 >= regs::kMessageBytesMax) {
      run.answer = Answer::kError;
      return;
    }
    message.address = part.address;
    message.length = static_cast<uint16_t>(length);
    message.segments = static_cast<uint8_t>((length + kFull - 1) / kFull);
    Landing landing;
    run.answer = !RxEngine::sane(message)
                     ? Answer::kError
                     : admission_.admit(message, pair, padded(length), &landing);
    if (run.answer == Answer::kDone) {
      place(message, puller, run, landing);
    }
  }
}

/// Fast path: messages of several segments for the shared queue, whose bytes are at hand.
/// @return how many have landed; admit() handles the next one.
uint32_t RxPull::land_with_bytes(const InFrame& frame, const Run& run) {
  InFrame message = frame;
  message.type = FrameType::kMessage;
  message.op = 0;
  message.ssize = kFull;
  const uint8_t* const revocable = bytes_are_mapped(frame) ? frame.at : nullptr;
  uint32_t landed = 0;
  for (const uint32_t parts = run.end - run.first; landed < parts; ++landed) {
    const PullPart part = part_of(frame, run.first + landed, windows_);
    if (part.length > regs::kMessageBytesMax) {
      break;
    }
    message.at = reinterpret_cast<const uint8_t*>(part.address) - sizeof(Frame);
    message.bytes = frame_bytes(part.length);
    message.length = static_cast<uint16_t>(part.length);
    message.segments = static_cast<uint8_t>(plain::segments_of(part.length));
    if (!several_.land(message, revocable)) {
      break;
    }
  }
  return landed;
}

/// Fast path: messages for a dedicated ring with matching entries that land in one piece. @return
/// how many; admit() handles the next one.
uint32_t RxPull::take_entries(const InFrame& frame, Pair& pair, Run& run) {
  Ring* const ring = Admission::dedicated_ring(pair, frame);
  if (core_.faults.enabled() || core_.config.vfs != 0 || ring == nullptr || !ring->running() ||
      ring->held) {
    return 0;
  }
  const uint32_t parts = std::min(run.end - run.first, core_.poll_tail(*ring));
  const uint64_t addr_mask = (1ull << core_.config.dedicated_addr_log2) - 1;
  const uint32_t size_mask = (1u << core_.config.dedicated_size_log2) - 1;
  const bool full = core_.config.quirk_last_full_256;
  uint32_t taken = 0;
  while (taken < parts) {
    const PullPart part = part_of(frame, run.first + taken, windows_);
    const Entry entry = entry_at(ring->entry(ring->head, 4));
    const uint32_t extent = full ? (part.length + kFull - 1) & ~(kFull - 1) : padded(part.length);
    if (part.length - 1 >= regs::kMessageBytesMax || entry.size != padded(part.length) ||
        (entry.size & size_mask) != 0 || (entry.addr & addr_mask) != 0) {
      break;
    }
    // Not writable(): the window of short messages stays, which their fast paths need.
    uint8_t* const to = core_.host.large(entry.addr, extent, true);
    if (to == nullptr) {
      break;
    }
    Pull pull{&run, ring, nullptr, ring->head, 1, part.length, &cookies_[run_cookies_]};
    PullPiece piece{to, part.address, part.length};
    cookies_[run_cookies_] = entry.cookie;
    if (extent != part.length) {
      std::memset(to + part.length, 0, extent - part.length);
    } else if ((part.length & addr_mask) == 0 && !bytes_are_at_hand(frame)) {
      pull.count = take_alike(frame, run.first + taken, parts - taken, piece, entry.addr, pull);
      piece.len_bytes *= pull.count;
    }
    add(pull, piece);
    run_cookies_ += pull.count;
    ring->head += pull.count;
    taken += pull.count;
  }
  core_.counts.rx_packets += taken;
  return taken;
}

/// Extend a pull by the following messages that have the same length, and adjoin both in the
/// sender's memory and here. @param number index of the first message in the frame. @param addr its
/// destination. @return messages in the pull, up to `most`.
uint32_t RxPull::take_alike(const InFrame& frame, uint32_t number, uint32_t most,
                            const PullPiece& first, uint64_t addr, const Pull& pull) const {
  const HostWindow& window = core_.host.large_write_window();
  const uint32_t len = first.len_bytes;
  uint64_t from = first.from;
  uint64_t left = window.holds(addr, len) ? window.iova + window.len_bytes - addr - len : 0;
  // Locals: after each store, the compiler would reload members.
  const uint8_t* const entries = pull.ring->base;
  const uint32_t mask = pull.ring->mask;
  const uint32_t index = pull.index;
  const uint8_t* part = frame.payload() + number * sizeof(PullPart);
  uint32_t* const cookies = pull.cookies;
  uint32_t count = 1;
  for (; count < most && left >= len; ++count, left -= len) {
    part += sizeof(PullPart);
    from += len;
    addr += len;
    const Entry entry = entry_at(entries + size_t{(index + count) & mask} * sizeof(Entry));
    if (load64(part) != from || static_cast<uint32_t>(load64(part + 8)) != len ||
        entry.addr != addr || entry.size != len) {
      break;
    }
    cookies[count] = entry.cookie;
  }
  return count;
}

void RxPull::add(const Pull& pull, const PullPiece& piece) {
  pulls_[pull_count_] = pull;
  pieces_[pull_count_] = piece;
  ++pull_count_;
}

void RxPull::place(const InFrame& frame, Puller& puller, Run& run, const Landing& landing) {
  const uint32_t bytes = padded(frame.length);
  const uint32_t last = (frame.segments - 1u) * kFull;
  const uint32_t extent = core_.config.quirk_last_full_256 ? last + kFull : bytes;
  uint8_t* const to = landing.ring->pair->function->host->writable(landing.addr, extent);
  if (to != nullptr) [[likely]] {
    if (extent != frame.length) {
      std::memset(to + frame.length, 0, extent - frame.length);
    }
    Landing& placed = placed_[pull_count_] = landing;
    add({&run, nullptr, &placed, 0, 1, frame.length, nullptr}, {to, frame.address, frame.length});
    return;
  }
  // The destination is not in one piece: pull earlier messages first, then land this one segment by
  // segment.
  end_pulls(puller);
  alignas(Frame) uint8_t copy[sizeof(Frame) + regs::kMessageBytesMax] = {};
  const PullPiece piece{copy + sizeof(Frame), frame.address, frame.length};
  const bool came = puller.pull({&piece, 1}) == frame.length && is_pull(run.at);
  if (came) {
    InFrame whole = frame;
    whole.at = copy;
    rx_.land_whole(landing, whole);
  }
  end_pull({&run, nullptr, &landing, 0, 1, frame.length, nullptr}, came ? 1 : 0);
}

/// Complete the messages of a pull. @param came how many were read; the later ones were not.
void RxPull::end_pull(const Pull& pull, uint32_t came) {
  const uint32_t bytes = padded(pull.len_bytes);
  if (pull.landing != nullptr) {
    admission_.complete(*pull.landing, came != 0 ? bytes : 0,
                        came != 0 ? Status::kOk : Status::kReceiveTimeout);
  } else {
    complete_entries(pull, 0, came, bytes, Status::kOk);
    complete_entries(pull, came, pull.count, 0, Status::kReceiveTimeout);
  }
  pull.run->taken = static_cast<uint16_t>(pull.run->taken + came);
  if (came != pull.count) {
    pull.run->answer = Answer::kError;
  }
}

/// Complete messages [begin, end) of a pull into a dedicated ring.
void RxPull::complete_entries(const Pull& pull, uint32_t begin, uint32_t end, uint32_t bytes,
                              Status status) {
  Ring& ring = *pull.ring;
  const auto last = static_cast<uint32_t>(status);
  if (core_.host.posting() || ring.cbase == nullptr || end - begin > ring.completions_in_a_row()) {
    for (; begin < end; ++begin) {
      regs::EntryCpl cpl{pull.cookies[begin], pull.index + begin, bytes, 0};
      core_.complete(ring, &cpl, last);
    }
    return;
  }
  const uint64_t last_words = bytes | static_cast<uint64_t>(last | ring.phase()) << 32;
  uint8_t* out = ring.cbase + (ring.cidx & ring.cmask) * sizeof(regs::EntryCpl);
  ring.cidx += end - begin;
  for (; begin < end; ++begin, out += sizeof(regs::EntryCpl)) {
    store64(out, pull.cookies[begin] | static_cast<uint64_t>(pull.index + begin) << 32);
    // release: payload and completion visible before the last word; pairs with load_completion.
    base::tsan_release(out + 12);
    __atomic_store_n(reinterpret_cast<uint64_t*>(out + 8), last_words, __ATOMIC_RELEASE);
  }
}

void RxPull::end_pulls(Puller& puller) {
  uint64_t pulled = pull_count_ == 0 ? 0 : puller.pull({pieces_.data(), pull_count_});
  const Run* run = nullptr;
  bool valid = false;
  for (uint32_t i = 0; i < pull_count_; ++i) {
    const Pull& pull = pulls_[i];
    const uint32_t bytes = pieces_[i].len_bytes;
    if (pull.run != run) {
      run = pull.run;
      valid = is_pull(run->at);
    }
    const uint32_t came =
        pulled >= bytes ? pull.count : static_cast<uint32_t>(pulled) / pull.len_bytes;
    pulled = pulled >= bytes ? pulled - bytes : 0;
    end_pull(pull, valid ? came : 0);
  }
  pull_count_ = 0;
  run_cookies_ = 0;
}

}  // namespace rio::model
