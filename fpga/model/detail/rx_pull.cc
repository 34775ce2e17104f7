// Long messages between processes: the receiver copies them once, straight out of the sender's
// memory, several at a time.
#include <algorithm>

#include "fpga/model/detail/rx_engine.hpp"

namespace rio::model {
namespace {

using regs::Status;

constexpr uint32_t kPullsMax = 16;
constexpr uint32_t kFull = regs::kSegmentBytesMax;

}  // namespace

bool RxEngine::on_pulls(const Inbound& in, const InFrame* first) {
  if (!responder_.ready_for(*first, kPullsMax)) {
    return false;
  }
  const uint32_t source = first->source;
  const uint32_t dest = first->dest;
  Context contexts[kPullsMax];
  PullPiece pieces[kPullsMax];
  uint32_t count = 0;
  uint32_t looked_at = 0;
  FrameReader& reader = *in.requests;
  for (const InFrame* frame = first;
       frame != nullptr && frame->type == FrameType::kPull && frame->source == source &&
       frame->dest == dest && looked_at < kPullsMax;
       frame = reader.peek(), ++looked_at) {
    ++core_.counts.rx_packets;
    Answer answer = Answer::kError;
    if (in.puller != nullptr && sane_whole(*frame) && frame->ssize == kFull) {
      answer = admit(*frame, target(*frame), padded(frame->length), &contexts[count]);
    }
    if (answer == Answer::kDone) {
      count += place_pull(contexts[count], *frame, *in.puller, &pieces[count]);
    } else {
      RxEngine::count(answer);
      responder_.ack(frame->place, 0, answer);
    }
    reader.pop(frame);
  }
  if (count != 0) {
    const std::span<const PullPiece> all(pieces, count);
    end_pulls(contexts, all, in.puller->pull(all));
  }
  return true;
}

// @return 1: `piece` is to be pulled; 0: it had to be landed bit by bit, and was.
uint32_t RxEngine::place_pull(Context& context, const InFrame& frame, Puller& puller,
                              PullPiece* piece) {
  const uint32_t bytes = padded(frame.length);
  const uint32_t last = (frame.segments - 1u) * kFull;
  const uint32_t extent = core_.config.quirk_last_full_256 ? last + kFull : bytes;
  uint8_t* const to = core_.host.writable(context.addr, extent);
  context.frame = frame.at;
  *piece = {to, frame.address, frame.length};
  if (to != nullptr) [[likely]] {
    std::memset(to + frame.length, 0, extent - frame.length);
    return 1;
  }
  alignas(Frame) uint8_t copy[sizeof(Frame) + regs::kMessageBytesMax] = {};
  piece->to = copy + sizeof(Frame);
  const uint64_t pulled = puller.pull({piece, 1});
  if (pulled == frame.length && is_pull(frame.at)) {
    InFrame landing = frame;
    landing.at = copy;
    land_whole(context, landing);
  }
  end_pulls(&context, {piece, 1}, pulled);
  return 0;
}

void RxEngine::end_pulls(const Context* contexts, std::span<const PullPiece> pieces,
                         uint64_t pulled) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const uint32_t len = pieces[i].len_bytes;
    const bool came = pulled >= len;
    pulled = came ? pulled - len : 0;
    const bool whole = came && is_pull(contexts[i].frame);
    complete(contexts[i], whole ? padded(len) : 0, whole ? Status::kOk : Status::kReceiveTimeout);
    const Answer answer = whole ? Answer::kDone : Answer::kError;
    count(answer);
    responder_.ack(contexts[i].place, 0, answer);
  }
}

}  // namespace rio::model
