#include "fpga/wire/udp/frame_units.hpp"

#include <algorithm>
#include <cstring>

#include "fpga/wire/frame_check.hpp"

namespace rio::wire::udp {
namespace {

/// Longest frame: a message of 4 KiB and its header, with room to spare.
constexpr uint32_t kFrameBytesMax = 4352;

[[nodiscard]] bool possible(uint32_t bytes) {
  return bytes >= sizeof(model::Frame) && bytes <= kFrameBytesMax &&
         bytes % model::kFrameAlign == 0;
}

/// Bytes that follow the bytes of a run.
constexpr uint64_t kTrailerBytes = model::kFrameAlign;
constexpr uint32_t kMessageBytesMax = 4096;

[[nodiscard]] constexpr uint64_t aligned(uint64_t bytes) {
  return (bytes + model::kFrameAlign - 1) / model::kFrameAlign * model::kFrameAlign;
}

/// Writes a frame's header in its form on the wire.
void put_header(const model::Frame& frame, const Ids& ids, uint8_t* to) {
  model::Frame header = frame;
  header.source -= ids.ours;
  header.dest -= ids.theirs;
  std::memcpy(to, static_cast<const void*>(&header), sizeof(header));
}

/// The messages that a copy of a frame of type kPull announces.
[[nodiscard]] std::span<model::PullPart> parts_of(std::vector<uint8_t>& frame) {
  return {reinterpret_cast<model::PullPart*>(frame.data() + sizeof(model::Frame)),
          head_of(frame.data()).length / sizeof(model::PullPart)};
}

}  // namespace

bool FrameUnits::gather(Connection* session) {
  const bool responses = gather(session, UnitKind::kResponses);
  const bool requests = gather(session, UnitKind::kRequests);
  return responses || requests;
}

bool FrameUnits::gather(Connection* session, UnitKind lane) {
  One& from = of(lane);
  bool any = false;
  while (from.out.reader.peek() != nullptr) {
    const std::span<uint8_t> unit = session->begin_unit(lane);
    if (unit.empty()) {
      break;
    }
    if (const size_t used = fill(from, unit.first(session->unit_bytes())); used > 0) {
      session->end_unit(lane, used);
    }
    any = true;
  }
  if (any) {
    from.out.reader.release();
  }
  return any;
}

size_t FrameUnits::fill(One& from, std::span<uint8_t> unit) {
  size_t used = 0;
  const model::InFrame* frame = from.out.reader.peek();
  while (frame != nullptr && used < unit.size()) {
    if (from.sent == 0) {
      begin_frame(from, *frame);
    }
    const size_t bytes = std::min<uint64_t>(from.length - from.sent, unit.size() - used);
    const std::span<uint8_t> to = unit.subspan(used, bytes);
    if (from.length == frame->bytes) {
      std::memcpy(to.data(), frame->at + from.sent, to.size());
      if (from.sent == 0) {  // units are cut so that a header is never split
        put_header(*frame, ids_, to.data());
      }
    } else {
      out_valid_ = out_valid_ && model::is_pull(frame->at);
      copy_run(from.sent, to);
    }
    used += bytes;
    from.sent += bytes;
    if (from.sent < from.length) {
      break;
    }
    from.sent = 0;
    from.out.reader.pop(frame);
    frame = from.out.reader.peek();
  }
  return used;
}

void FrameUnits::begin_frame(One& from, const model::InFrame& frame) {
  from.length = frame.bytes;
  if (frame.type == model::FrameType::kPull) {
    begin_run(frame);
    from.length = out_head_.size() + aligned(out_bytes_) + kTrailerBytes;
  } else if (frame.type == model::FrameType::kRevoked) {
    from.length = 0;  // no run has announced it
  }
}

void FrameUnits::begin_run(const model::InFrame& frame) {
  out_head_.assign(frame.at, frame.at + frame.bytes);
  put_header(frame, ids_, out_head_.data());
  const std::span<model::PullPart> parts = parts_of(out_head_);
  out_parts_.assign(parts.begin(), parts.end());
  out_bytes_ = 0;
  out_valid_ = true;
  for (model::PullPart& part : parts) {
    out_bytes_ += part.length;
    part.address = 0;  // addresses must not leave this process
  }
}

/// Copies bytes from an offset in the run.
void FrameUnits::copy_run(uint64_t at, std::span<uint8_t> to) {
  std::fill(to.begin(), to.end(), uint8_t{0});
  const auto copy = [&](uint64_t begin, const uint8_t* bytes, uint64_t length) {
    const uint64_t from = std::max(begin, at);
    const uint64_t end = std::min(begin + length, at + to.size());
    if (from < end) {
      std::memcpy(to.data() + (from - at), bytes + (from - begin), end - from);
    }
  };
  copy(0, out_head_.data(), out_head_.size());
  uint64_t begin = out_head_.size();
  for (const model::PullPart& part : out_parts_) {
    if (out_valid_) {
      copy(begin, reinterpret_cast<const uint8_t*>(static_cast<uintptr_t>(part.address)),
           part.length);
    }
    begin += part.length;
  }
  const uint8_t last = out_valid_ ? 1 : 0;
  copy(out_head_.size() + aligned(out_bytes_), &last, sizeof(last));
}

bool FrameUnits::take(UnitKind lane, std::span<const uint8_t> unit) {
  One& to = of(lane);
  // One frame more, for the end of the ring, where one may not fit.
  pulled_.free_passed(&requests_.in.writer);
  if (!to.in.writer.fits(static_cast<uint32_t>(unit.size() + to.begun.size()) + kFrameBytesMax) ||
      !pulled_.has_room()) {
    return false;
  }
  while (!unit.empty() && !foul_) {
    if (in_bytes_ != nullptr && lane == UnitKind::kRequests) {
      unit = unit.subspan(take_run(unit));
      continue;
    }
    const bool begun = !to.begun.empty();
    const uint8_t* const head = begun ? to.begun.data() : unit.data();
    const uint32_t length = begun || unit.size() >= sizeof(model::Frame) ? head_of(head).bytes : 0;
    if (!possible(length)) {
      foul_ = true;
      break;
    }
    const size_t bytes = std::min<size_t>(length - to.begun.size(), unit.size());
    if (!begun && bytes == length) {
      take_frame(lane, unit.first(bytes));
    } else {
      to.begun.insert(to.begun.end(), unit.begin(), unit.begin() + static_cast<ptrdiff_t>(bytes));
      if (to.begun.size() == length) {
        take_frame(lane, to.begun);
        to.begun.clear();
      }
    }
    unit = unit.subspan(bytes);
  }
  to.in.writer.publish();
  return true;
}

void FrameUnits::take_frame(UnitKind lane, std::span<const uint8_t> frame) {
  model::Frame header = head_of(frame.data());
  if (header.source >= ids_.their_count || header.dest >= ids_.our_count ||
      is_response(header.type) != (lane == UnitKind::kResponses)) {
    foul_ = true;
    return;
  }
  if (header.type == model::FrameType::kPull && in_bytes_ == nullptr) {
    expect_run(frame);
    return;
  }
  header.source += ids_.theirs;
  header.dest += ids_.ours;
  if (!put_frame(of(lane).in.writer, header, frame.data() + sizeof(header))) {
    foul_ = true;  // there was room a moment ago
  }
}

/// Prepares for the bytes of a run's messages, which come next.
void FrameUnits::expect_run(std::span<const uint8_t> frame) {
  const model::Frame header = head_of(frame.data());
  const size_t parts = header.length / sizeof(model::PullPart);
  if (parts == 0 || parts > model::kPullPartsMax ||
      model::frame_bytes(header.length) > frame.size()) {
    foul_ = true;
    return;
  }
  in_head_.assign(frame.begin(), frame.end());
  uint64_t bytes = 0;
  for (const model::PullPart& part : parts_of(in_head_)) {
    foul_ = foul_ || part.length - 1 >= kMessageBytesMax;
    bytes += part.length;
  }
  if (foul_) {
    return;
  }
  in_length_ = aligned(bytes) + kTrailerBytes;
  in_here_ = 0;
  in_bytes_ = pulled_.add(static_cast<uint32_t>(in_length_));
}

size_t FrameUnits::take_run(std::span<const uint8_t> bytes) {
  const size_t more = std::min<uint64_t>(bytes.size(), in_length_ - in_here_);
  std::memcpy(in_bytes_ + in_here_, bytes.data(), more);
  in_here_ += more;
  if (in_here_ == in_length_) {
    end_run();
  }
  return more;
}

void FrameUnits::end_run() {
  const uint8_t valid = in_bytes_[in_length_ - kTrailerBytes];
  if (valid == 1) {
    uint64_t at = reinterpret_cast<uintptr_t>(in_bytes_);
    for (model::PullPart& part : parts_of(in_head_)) {
      part = {at, part.length, 0};
      at += part.length;
    }
    take_frame(UnitKind::kRequests, in_head_);  // in_bytes_ says that its bytes are here
    pulled_.set_end(requests_.in.writer.tail());
  } else {
    foul_ = foul_ || valid != 0;
    pulled_.drop_last();
  }
  in_bytes_ = nullptr;
}

uint8_t* Pulled::add(uint32_t bytes) {
  Run run{{}, 0};
  if (!spare_.empty()) {
    run.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  run.bytes.resize(bytes);
  bytes_ += bytes;
  runs_.push_back(std::move(run));
  return runs_.back().bytes.data();
}

void Pulled::free_passed(model::FrameWriter* writer) {
  while (!runs_.empty() && runs_.front().end != 0 && writer->passed(runs_.front().end & ~1u)) {
    bytes_ -= runs_.front().bytes.size();
    if (constexpr size_t kSpareMax = 4; spare_.size() < kSpareMax) {
      spare_.push_back(std::move(runs_.front().bytes));
    }
    runs_.pop_front();
  }
}

const uint8_t* Pulled::find(uint64_t from, uint32_t bytes) const {
  for (const Run& run : runs_) {
    const auto begin = reinterpret_cast<uintptr_t>(run.bytes.data());
    if (from >= begin && from - begin <= run.bytes.size() &&
        bytes <= run.bytes.size() - (from - begin)) {
      return run.bytes.data() + (from - begin);
    }
  }
  return nullptr;
}

uint64_t Pulled::pull(std::span<const model::PullPiece> pieces) {
  uint64_t all = 0;
  for (const model::PullPiece& piece : pieces) {
    const uint8_t* const from = find(piece.from, piece.len_bytes);
    if (from == nullptr) {
      break;
    }
    std::memcpy(piece.to, from, piece.len_bytes);
    all += piece.len_bytes;
  }
  return all;
}

}  // namespace rio::wire::udp
