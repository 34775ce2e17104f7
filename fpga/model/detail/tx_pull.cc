// Long messages between processes: only where they are is sent; see rx_pull.cc.
#include "fpga/model/detail/tx_engine.hpp"

namespace rio::model {
namespace {

using Control = regs::tx_desc::Control;

constexpr uint32_t kSsize256 = 14;
/// Messages that are pulled: shorter ones are through the ring before a system call is done.
constexpr uint32_t kPullBytesMin = 2048;

}  // namespace

// Plain ones, where the partner can pull. @return false: another way is needed.
bool TxEngine::send_to_be_pulled(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place) {
  const uint32_t control = msg.desc.control;
  if (flow.way->pulls == nullptr || flow.way->pulls->load(std::memory_order_relaxed) == 0 ||
      !msg.whole || msg.desc.length < kPullBytesMin || Control::ssize.get(control) != kSsize256 ||
      Control::inline_.get(control) != 0 || Control::addrs.get(control) != 0) {
    return false;
  }
  // What the partner will read, this card may read.
  const uint8_t* const bytes = core_.host.readable(msg.desc.addr, msg.desc.length);
  Frame* const frame = bytes == nullptr ? nullptr : flow.way->requests->reserve(sizeof(Frame));
  if (frame == nullptr) {
    return false;
  }
  frame->clear();
  frame->type = FrameType::kPull;
  frame->source = pair.dest_id;
  frame->dest = flow.dest_id;
  frame->length = static_cast<uint16_t>(msg.desc.length);
  frame->place = static_cast<uint8_t>(place);
  frame->segments = msg.segments;
  frame->ssize = regs::kSegmentBytesMax;
  frame->address = reinterpret_cast<uintptr_t>(bytes);
  msg.pull_at = flow.way->requests->tail() | 1;
  flow.way->requests->commit(frame, sizeof(Frame));  // published with those behind it
  ++core_.counts.tx_packets;
  msg.unsent = 0;
  msg.open = 1;
  msg.since_ns = core_.now_ns;
  return true;
}

// Its memory will be the host's again: nobody may take it for the message's from now on.
void TxEngine::revoke(const Flow& flow, TxMsg& msg) {
  if (msg.open != 0) {
    flow.way->requests->revoke(msg.pull_at & ~1u);
  }
  msg.pull_at = 0;
}

}  // namespace rio::model
