#include "fpga/model/card/rail_block.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace rio::model {
namespace {

namespace words = regs::rail;
using words::Control;

/// A number of bytes as a word of the status.
[[nodiscard]] uint32_t saturated(uint64_t bytes) {
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

}  // namespace

void RailBlock::work() {
  if (!core_.config.rail) {
    return;
  }
  const uint32_t control = core_.bar.load(words::control());
  if (Control::gen.get(control) != Control::gen.get(control_)) [[unlikely]] {
    change(control);
  }
  if (enabled_ && core_.now_ns - written_ns_ >= period_ns_) [[unlikely]] {
    write();
  }
}

void RailBlock::change(uint32_t control) {
  const Bar& bar = core_.bar;
  control_ = control;
  base_iova_ = bar.load64(words::base_lo(), words::base_hi());
  period_ns_ = 1000ull * bar.load(words::period_us());
  enabled_ = Control::enable.get(control) != 0 && base_iova_ % kBytes == 0 && period_ns_ != 0;
  if (enabled_) {
    write();
  }
  core_.fence();
  bar.store(words::status(),
            (control & Control::gen.mask()) | Control::enable.put(enabled_ ? 1 : 0));
}

void RailBlock::reset() {
  if (!core_.config.rail) {
    return;
  }
  control_ = core_.bar.load(words::control());
  enabled_ = false;
  sequence_ = 0;
  core_.fence();
  core_.bar.store(words::status(), 0);
}

void RailBlock::write() {
  ++sequence_;
  written_ns_ = core_.now_ns;
  const auto image = std::bit_cast<std::array<uint32_t, kBytes / 4>>(status());
  core_.functions[0].host->write_words(base_iova_, image.data(), kBytes / 4);
}

bool RailBlock::answers(const InFrame& request) {
  return static_cast<regs::DmaOp>(request.op) == regs::DmaOp::kNread &&
         request.address == ~uint64_t{0} - (kBytes - 1) && request.length == kBytes &&
         core_.owner(request.dest) != nullptr;
}

bool RailBlock::on_read(const InFrame& request) {
  Frame* const response = responder_.begin(request, FrameType::kResponse, kBytes);
  if (response == nullptr) {
    return false;
  }
  ++core_.counts.rx_packets;
  Answer answer = Answer::kDone;
  if (core_.faults.draw(Fault::kRetry)) {
    answer = Answer::kRetry;
  } else if (core_.faults.draw(Fault::kError)) {
    answer = Answer::kError;
  }
  response->op = static_cast<uint8_t>(answer);
  if (answer == Answer::kDone) {
    const regs::RailStatus now = status();
    std::memcpy(response->payload(), &now, kBytes);
  } else {
    response->length = 0;
    core_.counts.rx_errors += answer == Answer::kError ? 1 : 0;
  }
  responder_.send(response);
  return true;
}

regs::RailStatus RailBlock::status() const {
  using Busy = regs::rail_status::Busy;
  const Load now = load();
  regs::RailStatus status{};
  status.sequence = status.sequence_end = sequence_;
  status.busy =
      Busy::reading.put(now.reading ? 1 : 0) | Busy::receiving.put(now.rx_bytes != 0 ? 1 : 0);
  status.tx_bytes = saturated(now.tx_bytes);
  status.rx_bytes = saturated(now.rx_bytes);
  status.link = core_.bar.load(regs::port::link());
  status.time = core_.ticks();
  status.magic = regs::kMagic;
  return status;
}

RailBlock::Load RailBlock::load() const {
  const DmaEngine::Load dma = dma_.load();
  Load all{dma.sends, dma.write_bytes, dma.read_bytes + rx_.missing_bytes()};
  for (const Pair& pair : core_.pairs) {
    if (!pair.live) {
      continue;
    }
    const Ring& tx = pair.rings[kTxRing];
    all.reading = all.reading || tx_.has_posted(tx) || pair.rings[kDmaRing].waits();
    for (const auto& [dest_id, flow] : pair.flows) {
      add(*flow, &all);
    }
  }
  return all;
}

/// Add the messages of a flow that have been fetched and have not ended.
void RailBlock::add(const Flow& flow, Load* load) {
  for (const TxEntry& entry : flow.waiting) {
    load->reading = true;
    load->tx_bytes += entry.is_doorbell() ? 0 : entry.desc.length;
  }
  for (uint32_t mbox = 0; mbox < regs::kMailboxes; ++mbox) {
    for (uint32_t left = flow.busy[mbox]; left != 0; left &= left - 1) {
      const TxMsg& msg = flow.msgs[place_of(mbox, static_cast<uint32_t>(std::countr_zero(left)))];
      if (msg.state != TxMsg::kFlying) {
        continue;
      }
      load->reading = load->reading || msg.unsent != 0;
      if (msg.segments != TxMsg::kRun) {
        load->tx_bytes += msg.desc.length;
        continue;
      }
      const PullRun& run = flow.run_of(msg);
      for (uint32_t i = 0; i < run.left(); ++i) {
        load->tx_bytes += run.at(i).length;
      }
    }
  }
}

}  // namespace rio::model
