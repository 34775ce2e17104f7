// Entries that wait inside the card while later ones pass them.
#include <algorithm>

#include "fpga/model/reference/tx_desc.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

using regs::Status;

namespace {

/// How often the head of the ring has to wait before the card, in fast mode, passes over it.
constexpr uint32_t kBlockedRuns = 8;

}  // namespace

/// Whether the card passes over the head of the ring, which must wait. In fast mode not at once:
/// most waits are short, and entries that wait inside the card take no fast path.
bool TxEngine::passes_over(Pair& pair, const Ring& ring, const TxEntry& head) const {
  if (core_.exact || ring.slots_at != 0) {
    return true;
  }
  pair.blocked_runs = pair.blocked_head == ring.head ? pair.blocked_runs + 1 : 0;
  pair.blocked_head = ring.head;
  if (pair.blocked_runs % kBlockedRuns != kBlockedRuns - 1) {
    return false;
  }
  const uint32_t end = std::min(ring.posted(), core_.config.pass_over - pair.waiting + 1);
  for (uint32_t i = 1; i < end; ++i) {
    const TxEntry next = {ring.fetch<regs::TxDesc>(ring.head + i), {}, 0};
    if (is_skip(next.desc)) {
      continue;
    }
    if (next.desc.dest_id != head.desc.dest_id || next.lane_bit() != head.lane_bit()) {
      return true;
    }
    i += units_of(next.desc) - 1;
  }
  return false;
}

void TxEngine::wait_inside(Flow& flow, const TxEntry& entry) {
  if (flow.pair.last_flow == &flow) {
    flow.way->requests->publish();
    flow.pair.last_flow = nullptr;
  }
  if (flow.waiting.empty()) {
    due_.push_back({&flow, nullptr});
  }
  flow.waiting.push_back(entry);
  flow.waiting_lanes |= entry.lane_bit();
  ++flow.pair.waiting;
  ++flow.pair.no_flight;
}

/// Start what may start of the flow's waiting entries.
void TxEngine::start_waiting(Flow& flow) {
  const Ring& ring = flow.pair.rings[kTxRing];
  if (!ring.running() || ring.held) {
    return;
  }
  std::vector<TxEntry>& waiting = flow.waiting;
  uint32_t blocked_lanes = 0;
  auto kept = waiting.begin();
  auto next = kept;
  for (; next != waiting.end() && blocked_lanes != flow.waiting_lanes; ++next) {
    if ((blocked_lanes & next->lane_bit()) == 0) {
      --flow.pair.no_flight;
      if (start(flow, *next)) {
        --flow.pair.waiting;
        continue;
      }
      ++flow.pair.no_flight;
    }
    blocked_lanes |= next->lane_bit();
    *kept++ = *next;
  }
  waiting.erase(kept, next);
  flow.waiting_lanes = blocked_lanes;
}

void TxEngine::drop_waiting(Flow& flow) {
  std::erase_if(due_, [&](const Due& due) { return due.flow == &flow && due.msg == nullptr; });
  flow.pair.waiting -= static_cast<uint32_t>(flow.waiting.size());
  flow.pair.no_flight -= static_cast<uint32_t>(flow.waiting.size());
  flow.waiting.clear();
  flow.waiting_lanes = 0;
}

void TxEngine::flush_waiting(Flow& flow, Status status) {
  Ring& ring = flow.pair.rings[kTxRing];
  for (const TxEntry& entry : flow.waiting) {
    core_.complete_tx(ring, entry.desc.cookie, entry.index, status);
    --ring.outstanding;
  }
  drop_waiting(flow);
}

void TxEngine::begin_stop(Ring& ring) {
  core_.each_flow([this](Flow& flow) { flush_waiting(flow, Status::kFlushed); }, ring.pair);
  flush_posted(ring, Status::kFlushed);
  for (TxEntry entry{}; read_slot(ring, &entry);) {
    ring.tail = ring.head + units_of(entry.desc);
    finish_unsent(ring, entry.desc, Status::kFlushed);
  }
}

void TxEngine::link_down() {
  core_.each_flow([this](Flow& flow) { flush_waiting(flow, Status::kLinkDown); });
}

}  // namespace rio::model
