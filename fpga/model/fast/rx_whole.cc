#include "fpga/model/fast/rx_whole.hpp"

#include <algorithm>

#include "fpga/model/copy.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kFull = regs::kSegmentBytesMax;

}  // namespace

bool RxWhole::sane(const Frame& frame) {
  return frame.length >= 1 && frame.length <= regs::kMessageBytesMax && frame.segments >= 1 &&
         frame.segments <= regs::kSegmentsMax && frame.ssize >= 8 && frame.ssize <= kFull &&
         frame.length <= frame.segments * frame.ssize &&
         frame.length > (frame.segments - 1) * frame.ssize &&
         (frame.segments == 1 || frame.mbox() < regs::kMultiMailboxes);
}

bool RxWhole::on_message(const InFrame& frame) {
  if (!responder_.ready(frame)) {
    return false;
  }
  ++core_.counts.rx_packets;
  const Answer answer = take(frame);
  core_.count_answer(answer);
  responder_.ack(frame.place, 0, answer);
  return true;
}

Answer RxWhole::take(const InFrame& frame) {
  if (!sane(frame)) [[unlikely]] {
    return Answer::kError;
  }
  if (frame.segments > 1 && rx_.full()) {
    return Answer::kRetry;
  }
  Landing landing;
  const uint32_t bytes = padded(frame.length);
  const Answer answer = admission_.admit(frame, admission_.target(frame), bytes, &landing);
  if (answer == Answer::kDone) [[likely]] {
    land(landing, frame);
    admission_.complete(landing, bytes, regs::Status::kOk);
  }
  return answer;
}

void RxWhole::land(const Landing& landing, const InFrame& frame) {
  const uint32_t bytes = padded(frame.length);
  if (frame.segments == 1 || frame.ssize == kFull) [[likely]] {
    const uint32_t last = (frame.segments - 1) * kFull;
    const uint32_t extent = core_.config.quirk_last_full_256 ? last + kFull : bytes;
    uint8_t* to = core_.host.writable(landing.addr, extent);
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
    admission_.land(landing, frame, k, offset, frame.payload() + offset,
                    std::min<uint32_t>(frame.ssize, bytes - offset));
  }
}

}  // namespace rio::model
