#include "fpga/model/card/control.hpp"

#include <array>
#include <bit>
#include <vector>

namespace rio::model {
namespace {

namespace id = regs::id;
namespace map = regs::rx_map;
namespace port = regs::port;
namespace qp = regs::qp;
using regs::RingError;
using regs::RingState;

constexpr uint32_t kPushRingLog2Max = 15;  // entries that PushSlot's index tells apart

/// The bits that a ring's format may have. @param push whether the ring may have slots.
uint32_t formats(uint32_t ring, bool push) {
  using Format = qp::RingFormat;
  return Format::relaxed.mask() |
         (ring == kTxRing || ring == kSharedRing ? Format::completion.put(1) : 0) |
         (ring == kTxRing && push ? Format::push.mask() : 0);
}

/// Whether base and sizes are those that a barrier ring needs; true for another ring. No descriptor
/// crosses 4 KiB, and completions of slots have places beside those of entries.
bool suits_barriers(const Ring& ring, uint32_t log2, uint32_t clog2) {
  return ring.number != kBarrierRing || (ring.base_iova % sizeof(regs::BarrierDesc) == 0 &&
                                         1u << clog2 >= (1u << log2) + regs::kBarrierSlots);
}

}  // namespace

void Control::power_on() {
  default_host_words();
  for (Pair& pair : core_.pairs) {
    pair.number = static_cast<uint32_t>(&pair - core_.pairs.data());
    functions_.give(pair, core_.functions[0], pair.number, &pair == &core_.pairs.back());
  }
  read_timers();
  functions_.power_on();
}

void Control::default_host_words() {
  Bar& bar = core_.bar;
  bar.store(id::dest_id_size(), id::kDestIdSizeReset);
  bar.store(id::response_timeout_us(), id::kResponseTimeoutUsReset);
  bar.store(id::receive_timeout_us(), id::kReceiveTimeoutUsReset);
  bar.store(id::retry_delay_us(), id::kRetryDelayUsReset);
  for (uint32_t i = 0; i < regs::kMaxQps; ++i) {
    bar.store(id::qp_dest_id(i), id::kQpDestIdReset);
  }
  bar.store(port::control(), port::kControlReset);
}

void Control::lose_state() {
  Bar& bar = core_.bar;
  clear_block(bar, id::kBase, id::kSizeBytes);
  clear_block(bar, map::kBase, map::kSizeBytes);
  clear_block(bar, port::kBase, port::kSizeBytes);
  clear_block(bar, regs::rail::kBase, regs::rail::kSizeBytes);
  clear_block(bar, regs::vf::kBase, regs::vf::kSizeBytes);
  for (const Pair& pair : core_.pairs) {
    clear_pair(bar, pair.number);
  }
  default_host_words();
  read_owners();
  reset(0);
}

void Control::read_timers() {
  const Bar& bar = core_.bar;
  const uint64_t response_us = bar.load(id::response_timeout_us());
  if (core_.timers.response_ns != 1000 * response_us) {
    functions_.tell(id::response_us(), static_cast<uint32_t>(response_us));
  }
  core_.timers.response_ns = 1000 * response_us;
  core_.timers.receive_ns = 1000ull * bar.load(id::receive_timeout_us());
  core_.timers.retry_ns = 1000ull * bar.load(id::retry_delay_us());
  core_.timers.retry_limit = bar.load(id::retry_limit());
}

void Control::reset_pair(Pair& pair) {
  core_.fence();  // the engines write nothing from here on
  engines_.rx.forget(pair);
  engines_.target.forget(pair);
  engines_.tx.forget(pair);
  engines_.transactions.forget(pair);
  engines_.dma.forget(pair);
  engines_.maint.forget(pair);
  engines_.barriers.forget(pair);
  const Bar& bar = pair.function->bar;
  for (uint32_t r = 0; r < regs::kRingsPerQp; ++r) {
    const uint32_t control = bar.load(qp::ring_control(pair.slot, r));
    pair.rings[r] = {.tail_word = bar.word(qp::tail(pair.slot, r)),
                     .gen = static_cast<uint16_t>(control),
                     .pair = &pair,
                     .number = r,
                     .pcie = pair.rings[r].pcie};
    bar.store(qp::ring_status(pair.slot, r), 0);
    set_dedicated(pair.rings[r], false);
  }
  pair.lost_events = 0;
  pair.live = false;
}

void Control::reset(uint32_t gen_ack) {
  functions_.take_all_back();
  for (Pair& pair : core_.pairs) {
    reset_pair(pair);
  }
  engines_.rail.reset();
  set_stopping(false);
  core_.bar.store(id::gen_ack(), gen_ack);
}

void Control::scan() {
  const Bar& bar = core_.bar;
  const uint32_t wanted = bar.load(id::gen_req());
  if (wanted != bar.load(id::gen_ack())) {
    read_timers();
    read_owners();
    reset(wanted);
  }
  if (bar.load(map::apply()) != bar.load(map::applied())) {
    read_owners();
  }
  read_timers();
  functions_.scan();
  for (Pair& pair : core_.pairs) {
    scan_pair(pair);
  }
}

void Control::read_owners() {
  core_.wire->end_leases();  // of the pairs that had the requests before
  const Bar& bar = core_.bar;
  const uint32_t apply = bar.load(map::apply());
  core_.owners.clear();
  core_.last_owner = nullptr;
  for (uint32_t i = 0; i < regs::kRxMapEntries; ++i) {
    const uint32_t entry = bar.load(map::entry(i));
    const uint32_t pair = map::Entry::qp.get(entry);
    if (map::Entry::valid.get(entry) == 0 || pair >= core_.pairs.size()) {
      continue;
    }
    const uint32_t dest_id = bar.load(map::dest_id(i));
    Owner* owner = core_.find_owner(dest_id);
    if (owner == nullptr) {
      owner = &core_.owners.emplace_back();
      owner->dest_id = dest_id;
      std::memset(owner->entry_of_mbox, kNoEntry, sizeof(owner->entry_of_mbox));
    }
    // The first entry that wants something gets it.
    const auto claim = [](uint64_t wanted, uint32_t value, uint8_t* receiver) {
      *receiver = wanted != 0 && *receiver == kNoPair ? static_cast<uint8_t>(value) : *receiver;
    };
    core_.pair_of_entry[i] = static_cast<uint8_t>(pair);
    const uint64_t mboxes = bar.load64(map::mbox_lo(i), map::mbox_hi(i));
    for (uint32_t m = 0; m < regs::kMailboxes; ++m) {
      claim(mboxes >> m & 1, i, &owner->entry_of_mbox[m]);
    }
    claim(map::Entry::doorbells.get(entry), pair, &owner->pair_of_doorbells);
    claim(map::Entry::requests.get(entry), pair, &owner->pair_of_requests);
    core_.last_owner = nullptr;
  }
  core_.sort_plain();
  core_.fence();
  core_.bar.store(map::applied(), apply);
}

void Control::scan_pair(Pair& pair) {
  const Bar& bar = pair.function->bar;
  const uint32_t dest_id = core_.bar.load(id::qp_dest_id(pair.number));
  if (dest_id != pair.dest_id) {
    pair.dest_id = dest_id;
    for (const auto& [partner, flow] : pair.flows) {
      flow->leases.reset();  // they were given to the destID before
    }
    core_.bar.store(qp::dest_id(pair.number), dest_id);
    bar.store(qp::dest_id(pair.slot), dest_id);
    if (pair.number == 0) {
      engines_.maint.csr().set_dest_id(dest_id, core_.bar.load(id::dest_id_size()));
    }
  }
  for (Ring& ring : pair.rings) {
    const uint32_t control = bar.load(qp::ring_control(pair.slot, ring.number));
    const auto gen = static_cast<uint16_t>(qp::RingControl::gen.get(control));
    if (gen == ring.gen || (pair.ring_set >> ring.number & 1) == 0) {
      continue;
    }
    if (qp::RingControl::run.get(control) != 0) {
      start_ring(ring, gen);
    } else {
      stop_ring(ring, gen);
    }
  }
  engines_.target.read_windows(pair);
}

RingError Control::load_ring(Ring& ring) {
  const Function& function = *ring.pair->function;
  const Bar& bar = function.bar;
  const uint32_t q = ring.pair->slot;
  const uint32_t number = ring.number;
  const uint32_t size = bar.load(qp::ring_size(q, number));
  const uint32_t log2 = qp::RingSize::log2.get(size);
  const uint32_t clog2 = qp::RingSize::clog2.get(size);
  const uint32_t irq = bar.load(qp::ring_irq(q, number));
  const uint32_t vectors = function.irqs == nullptr ? 0 : core_.config.vectors;
  const uint32_t format = bar.load(qp::ring_format(q, number));
  ring.base = nullptr;
  ring.cbase = nullptr;
  ring.head = ring.tail = 0;
  ring.base_iova = bar.load64(qp::ring_base_lo(q, number), qp::ring_base_hi(q, number));
  ring.cbase_iova = bar.load64(qp::ring_cbase_lo(q, number), qp::ring_cbase_hi(q, number));
  if (log2 < kRingLog2Min || log2 > kRingLog2Max || clog2 < log2 || clog2 > kRingLog2Max ||
      ((ring.base_iova | ring.cbase_iova) & 63) != 0 || !suits_barriers(ring, log2, clog2) ||
      (qp::RingIrq::enable.get(irq) != 0 && qp::RingIrq::vector.get(irq) >= vectors) ||
      // No capability of these words.
      (bar.load(qp::ring_coalesce(q, number)) | bar.load(qp::ring_pasid(q, number)) |
       bar.load(qp::ring_tph(q, number))) != 0 ||
      (format & ~formats(number, core_.config.push_slots_log2 != 0 && log2 <= kPushRingLog2Max)) !=
          0) {
    return RingError::kConfig;
  }
  ring.slots_at = qp::RingFormat::push.get(format) != 0 ? qp::base(q) + regs::kPushSlotsAt : 0;
  ring.next_slot = 0;
  ring.cumulative = number == kTxRing && qp::RingFormat::completion.get(format) != 0;
  ring.gathers = false;
  ring.relaxed = qp::RingFormat::relaxed.get(format) != 0;
  ring.brief = number == kSharedRing && qp::RingFormat::completion.get(format) != 0;
  ring.waiting = 0;
  ring.cpl_bytes = ring.brief ? sizeof(regs::SharedShortCpl) : ring_kind(number).centry_bytes;
  ring.mask = (1u << log2) - 1;
  ring.cmask = (1u << clog2) - 1;
  ring.cshift = static_cast<uint8_t>(clog2);
  ring.head = ring.tail = ring.cidx = ring.fetched = bar.load(qp::ring_start(q, number));
  ring.irq = qp::RingIrq::enable.get(irq) != 0;
  ring.vector = static_cast<uint8_t>(qp::RingIrq::vector.get(irq));
  ring.moderation_us = qp::RingIrq::moderation_us.get(irq);
  ring.arm = bar.load(qp::arm(q, number));
  ring.armed = ring.cidx;
  ring.irq_due = true;
  ring.held = false;
  return map_ring(ring) ? RingError::kNone : RingError::kHostRead;
}

bool Control::map_ring(Ring& ring) {
  const RingKind kind = ring_kind(ring.number);
  const uint64_t len = kind.entry_bytes * (ring.mask + 1ull);
  const uint64_t clen = ring.cpl_bytes * (ring.cmask + 1ull);
  HostPort& host = *ring.pair->function->host;
  ring.base = len == 0 ? nullptr : host.ring_memory(ring.base_iova, len, false);
  ring.cbase = host.ring_memory(ring.cbase_iova, clen, true);
  return ring.cbase != nullptr && (len == 0 || ring.base != nullptr);
}

void Control::set_dedicated(const Ring& ring, bool open) {
  if (ring.number < kDedicatedRing) {
    return;
  }
  Pair& pair = *ring.pair;
  const uint32_t queue = ring.number - kDedicatedRing;
  for (uint8_t& mbox : pair.dedicated_open) {
    mbox = static_cast<uint8_t>(mbox & ~(1u << queue));
  }
  if (open) {
    const Bar& bar = pair.function->bar;
    const uint32_t filter = bar.load(qp::ring_filter(pair.slot, ring.number));
    pair.dedicated_source[queue] = bar.load(qp::ring_source(pair.slot, ring.number));
    pair.dedicated_open[qp::RingFilter::mbox.get(filter)] |= static_cast<uint8_t>(1u << queue);
  }
  core_.sort_plain();
}

void Control::start_ring(Ring& ring, uint16_t gen) {
  if (ring.state != RingState::kStopped) {
    // Only a stopped ring can start; in any other state the request has no effect.
    return;
  }
  ring.gen = gen;
  const RingError error = load_ring(ring);
  if (error != RingError::kNone) {
    core_.fail_ring(ring, error, 0);
    return;
  }
  ring.state = RingState::kRunning;
  ring.started_us = static_cast<uint32_t>(core_.now_ns / 1000);
  set_dedicated(ring, true);
  if (ring.number == kBarrierRing) {
    engines_.barriers.open(ring);
  }
  core_.tell_status(ring, RingError::kNone);
  core_.read_tail(ring);  // read directly: a tail written before the start is not delayed
}

void Control::stop_ring(Ring& ring, uint16_t gen) {
  if (ring.state == RingState::kRunning || ring.state == RingState::kError) {
    begin_stop(ring);
  }
  ring.gen = gen;
  core_.tell_status(ring, RingError::kNone);
  set_stopping(true);
  finish_stops();
}

void Control::set_stopping(bool stopping) {
  core_.chores = static_cast<uint8_t>((core_.chores & ~kStopChore) | (stopping ? kStopChore : 0));
}

void Control::begin_stop(Ring& ring) {
  ring.held = false;
  if (ring.state == RingState::kRunning) {
    core_.read_tail(ring);
  }
  if (ring.base == nullptr) {
    ring.tail = ring.head;  // nothing is posted, or the host has unmapped the memory
  }
  ring.state = RingState::kStopping;
  switch (ring.number) {
    case kTxRing:
      engines_.tx.begin_stop(ring);
      break;
    case kDmaRing:
      engines_.dma.begin_stop(ring);
      break;
    case kMaintRing:
      core_.flush_entries<regs::MaintDesc>(ring);
      break;
    case kBarrierRing:
      engines_.barriers.begin_stop(ring);
      break;
    default:
      engines_.rx.stop(ring);
  }
  set_dedicated(ring, false);
}

void Control::finish_stops() {
  set_stopping(false);
  for (Pair& pair : core_.pairs) {
    for (Ring& ring : pair.rings) {
      if (ring.state != RingState::kStopping) {
        continue;
      }
      if (ring.outstanding != 0) {
        set_stopping(true);
        continue;
      }
      ring.state = RingState::kStopped;
      core_.tell_status(ring, RingError::kNone);
    }
  }
}

void Control::check_ring_memory() {
  uint32_t generation = 0;
  for (const Function& function : core_.functions) {
    generation += function.host->generation();
  }
  if (generation_ == generation) {
    return;
  }
  generation_ = generation;
  // All of them first: a ring that fails is reported in the ring of events, which may have
  // vanished.
  std::vector<Ring*> failed;
  for (Pair& pair : core_.pairs) {
    for (Ring& ring : pair.rings) {
      if (ring.state == RingState::kStopped || ring.cbase == nullptr || map_ring(ring)) {
        continue;
      }
      ring.base = nullptr;
      ring.cbase = nullptr;
      if (ring.running()) {  // otherwise it waits for its stop, or the stop for messages in flight
        failed.push_back(&ring);
      }
    }
  }
  for (Ring* const ring : failed) {
    core_.fail_ring(*ring, RingError::kHostRead, ring->head);
  }
}

void Control::interrupts() {
  interrupt_waits_ = false;
  for (Pair& pair : core_.pairs) {
    if (pair.function->irqs == nullptr) {
      continue;
    }
    for (Ring& ring : pair.rings) {
      if (!ring.irq || !ring.running()) {
        continue;
      }
      const uint32_t arm = pair.function->bar.load(qp::arm(pair.slot, ring.number));
      if (arm != ring.arm) {
        ring.arm = ring.armed = arm;
        ring.irq_due = true;
      }
      const bool calm = core_.now_ns - ring.last_irq_ns >= 1000ull * ring.moderation_us;
      if (!ring.irq_due || qp::Arm::index.get(ring.cidx - ring.armed) == 0) {
        continue;
      }
      interrupt_waits_ = interrupt_waits_ || !calm;
      if (calm) {
        core_.fence();
        ring.irq_due = false;
        ring.last_irq_ns = core_.now_ns;
        pair.function->irqs->raise(ring.vector);
      }
    }
  }
}

void Control::tell_port() {
  Bar& bar = core_.bar;
  const auto counts = std::bit_cast<std::array<uint32_t, 8>>(core_.counts);
  static_assert(port::rx_unmapped() == port::tx_packets() + 4 * (counts.size() - 1));
  for (uint32_t i = 0; i < counts.size(); ++i) {
    bar.store(port::tx_packets() + 4 * i, counts[i]);
  }
  bar.store(port::link(), core_.link_up
                              ? port::Link::up.put(1) | port::Link::lanes.put(4) |
                                    port::Link::lanes_max.put(4) | port::Link::lane_mbaud.put(6250)
                              : port::Link::lanes_max.put(4));
}

}  // namespace rio::model
