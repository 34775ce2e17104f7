#include "fpga/model/core/core.hpp"

#include <algorithm>
#include <iterator>

namespace rio::model {

using RingStatus = regs::qp::RingStatus;

Core::Core(const Config& cfg, Ends ends)
    : config(cfg),
      bar(ends.bar),
      host(ends.memory, cfg),
      wire(std::move(ends.wire)),
      clock(ends.clock),
      irqs(ends.irqs),
      pairs(cfg.queue_pairs) {
  functions.push_back({bar, &host, irqs});
  for (const FunctionEnds& vf : ends.vfs) {
    functions.push_back({Bar(vf.bar), &vf_hosts.emplace_back(vf.memory, cfg), vf.irqs});
  }
}

Owner* Core::find_owner(uint32_t dest_id) {
  for (Owner& owner : owners) {
    if (owner.dest_id == dest_id) {
      return last_owner = &owner;
    }
  }
  return nullptr;
}

void Core::sort_plain() {
  for (Owner& owner : owners) {
    for (uint32_t m = 0; m < regs::kMailboxes; ++m) {
      const uint8_t entry = owner.entry_of_mbox[m];
      const bool wanted = entry != kNoEntry && m < regs::kMultiMailboxes &&
                          pairs[pair_of_entry[entry]].dedicated_open[m] != 0;
      owner.plain_entry[m] = wanted ? kNoEntry : entry;
    }
    for (uint32_t m = 0; m < regs::kMailboxes; ++m) {
      owner.plain_like[m] = 0;
      for (uint32_t other = 0; other < regs::kMailboxes; ++other) {
        owner.plain_like[m] |=
            static_cast<uint64_t>(owner.plain_entry[other] == owner.plain_entry[m]) << other;
      }
    }
  }
}

Flow* Core::find_flow(Pair& pair, uint32_t dest_id) {
  if (pair.last_flow != nullptr) {
    pair.last_flow->way->requests->publish();
  }
  auto it = pair.flows.find(dest_id);
  if (it == pair.flows.end() || it->second->way->gone) {
    Outbound* way = wire->route(dest_id);
    if (way == nullptr) {
      return nullptr;
    }
    it = pair.flows.emplace(dest_id, std::make_unique<Flow>(pair, dest_id, way)).first;
  }
  Flow* const flow = it->second.get();
  pair.last_flow = flow->waiting.empty() ? flow : nullptr;
  return flow;
}

void Core::gather_tx(Ring& ring, const regs::TxCpl& cpl, uint32_t units) {
  using Last = regs::tx_cpl::Status;
  // The status of a message that was delivered without a RETRY is 0.
  const uint32_t reported = Last::more.get(ring.gathered.status) + 1;
  const bool grows = ring.gathers && cpl.index == ring.next_gathered &&
                     Last::retries.get(ring.gathered.status) == 0 &&
                     Last::code.get(ring.gathered.status) == 0 && Last::code.get(cpl.status) == 0 &&
                     reported < kGatheredMost;
  if (!grows) {
    end_gathering(ring);
  }
  ring.gathers = true;
  ring.gathered = cpl;
  ring.gathered.status |= Last::more.put(grows ? reported : 0);
  ring.next_gathered = cpl.index + units;
}

void Core::gather_short(Ring& ring, const regs::SharedShortCpl& cpl) {
  ring.line[ring.cidx % kCplsPerTlp] = cpl;
  ++ring.cidx;
  ++ring.waiting;
  if (ring.cidx % kCplsPerTlp == 0) {
    write_short(ring);
  }
}

/// Write the completions that wait, all in one line, as one TLP.
void Core::write_short(Ring& ring) {
  const uint32_t count = ring.waiting;
  const uint32_t first = ring.cidx - count;
  const uint32_t bytes = count * sizeof(regs::SharedShortCpl);
  const uint32_t at = (first & ring.cmask) * sizeof(regs::SharedShortCpl);
  const regs::SharedShortCpl* const from = &ring.line[first % kCplsPerTlp];
  ring.waiting = 0;
  if (ring.cbase == nullptr) {
    return;  // the host has unmapped the ring's memory
  }
  ring.pcie.write(bytes);
  if (host.posting()) {
    uint32_t words[sizeof(ring.line) / 4];
    std::memcpy(words, from, bytes);
    ring.pair->function->host->post_completion(ring.cbase_iova + at, words, bytes / 4);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    auto* const out = reinterpret_cast<regs::SharedShortCpl*>(ring.cbase + at) + i;
    std::memcpy(static_cast<void*>(out), &from[i], sizeof(*out) - 4);
    // release: payload and completion before the last word; pairs with load_completion.
    __atomic_store_n(&out->status, from[i].status, __ATOMIC_RELEASE);
  }
}

void Core::tell_status(Ring& ring, regs::RingError error) {
  Pair& pair = *ring.pair;
  fence();
  pair.live = std::any_of(std::begin(pair.rings), std::end(pair.rings),
                          [](const Ring& any) { return any.state != regs::RingState::kStopped; });
  pair.function->bar.store(regs::qp::ring_status(pair.slot, ring.number),
                           RingStatus::gen.put(ring.gen) |
                               RingStatus::state.put(static_cast<uint32_t>(ring.state)) |
                               RingStatus::error.put(static_cast<uint32_t>(error)));
}

void Core::fail_ring(Ring& ring, regs::RingError error, uint32_t entry) {
  ring.state = regs::RingState::kError;
  ring.pair->function->bar.store(regs::qp::ring_entry(ring.pair->slot, ring.number), entry);
  tell_status(ring, error);
  event(*ring.pair, regs::EventType::kRingError, 0, static_cast<uint32_t>(error),
        {entry, ring.number, 0, 0});
}

void Core::event(Pair& pair, regs::EventType type, uint32_t source, uint32_t info,
                 const uint32_t (&data)[4]) {
  Ring& ring = pair.rings[kEventRing];
  if (!ring.running()) {
    return;
  }
  const uint32_t room = poll_tail(ring);
  if (pair.lost_events > 0 && room > 1) {
    regs::EventCpl lost{
        static_cast<uint32_t>(regs::EventType::kOverflow), 0, pair.lost_events, 0, 0, 0, 0, 0};
    complete(ring, &lost, 0);
    ++ring.head;
    pair.lost_events = 0;
  } else if (room == 0 || pair.lost_events > 0) {
    ++pair.lost_events;
    return;
  }
  regs::EventCpl cpl{
      static_cast<uint32_t>(type), source, info, data[0], data[1], data[2], data[3], 0};
  complete(ring, &cpl, 0);
  ++ring.head;
}

bool Core::doorbell_is_late(const Ring& ring) {
  // The emulated PCIe delays some doorbells of sending rings. Doorbells of receive rings are not
  // delayed: a peer could not distinguish that from a full queue, and the rules say how a card uses
  // a posted buffer.
  return ring.sends() && host.rng().below(3) == 0;
}

void Core::refuse_tail(Ring& ring) {
  if (ring.slots_at != 0 && static_cast<int32_t>(ring.tail - ring.head) < 0) {
    ring.tail = ring.head;  // the host has not told TAIL of entries that came through slots
    return;
  }
  fail_ring(ring, regs::RingError::kTail, ring.tail);
  ring.tail = ring.head;
}

}  // namespace rio::model
