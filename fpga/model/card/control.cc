#include "fpga/model/card/control.hpp"

#include <array>
#include <bit>

namespace rio::model {
namespace {

namespace id = regs::id;
namespace map = regs::rx_map;
namespace port = regs::port;
namespace qp = regs::qp;
using regs::RingError;
using regs::RingState;

/// The rings of a queue pair. Only pair 0 has the maintenance ring, which belongs to the physical
/// function.
uint32_t ring_set(uint32_t pair) {
  uint32_t set = 0xFF00u | 1u << kTxRing | 1u << kSharedRing | 1u << kDoorbellRing |
                 1u << kDmaRing | 1u << kEventRing;
  return pair == 0 ? set | 1u << kMaintRing : set;
}

uint32_t block_word(regs::BlockType type, uint32_t instance) {
  return id::Block::type.put(static_cast<uint32_t>(type)) | id::Block::version.put(1) |
         id::Block::instance.put(instance);
}

}  // namespace

void Control::power_on() {
  Bar& bar = core_.bar;
  const Config& c = core_.config;
  bar.store(id::block(), block_word(regs::BlockType::kId, 0));
  bar.store(id::next(), map::kBase);
  bar.store(id::hw_version(), id::kHwVersionReset | id::HwVersion::model.put(1));
  bar.store(id::cap_queues(),
            id::CapQueues::qps.put(c.queue_pairs) | id::CapQueues::ring_log2_min.put(kRingLog2Min) |
                id::CapQueues::ring_log2_max.put(kRingLog2Max) |
                id::CapQueues::vectors.put(core_.irqs == nullptr ? 0 : c.vectors));
  bar.store(id::cap_messages(), id::CapMessages::tx_contexts.put(c.tx_contexts) |
                                    id::CapMessages::rx_contexts.put(c.rx_contexts) |
                                    id::CapMessages::letters.put(c.letters) |
                                    id::CapMessages::inline_bytes.put(regs::kInlineBytes));
  bar.store(id::cap_align(), id::CapAlign::tx_addr_log2.put(kTxAddrLog2) |
                                 id::CapAlign::shared_addr_log2.put(c.shared_addr_log2) |
                                 id::CapAlign::dedicated_addr_log2.put(c.dedicated_addr_log2) |
                                 id::CapAlign::dedicated_size_log2.put(c.dedicated_size_log2));
  bar.store(id::cap_flags(), id::CapFlags::quirk_last_at_256.put(c.quirk_last_at_256) |
                                 id::CapFlags::quirk_last_full_256.put(c.quirk_last_full_256) |
                                 id::CapFlags::wide.put(1) | id::CapFlags::dma.put(1) |
                                 id::CapFlags::maint.put(1) | id::CapFlags::atomics.put(1));
  bar.store(id::cap_timers(), id::CapTimers::tick_ns.put(kTickNs));
  bar.store(id::cap_dma_bytes(), kDmaBytesMax);
  default_host_words();
  bar.store(map::block(), block_word(regs::BlockType::kRxMap, 0));
  bar.store(map::next(), port::kBase);
  bar.store(port::block(), block_word(regs::BlockType::kPort, 0));
  bar.store(port::next(), qp::base(0));
  for (Pair& pair : core_.pairs) {
    const uint32_t q = pair.number = static_cast<uint32_t>(&pair - core_.pairs.data());
    const bool last = q + 1 == core_.pairs.size();
    bar.store(qp::block(q), block_word(regs::BlockType::kQp, q));
    bar.store(qp::next(q), regs::window::base(q));
    bar.store(qp::rings(q), ring_set(q));
    bar.store(qp::dest_id(q), qp::kDestIdReset);
    bar.store(regs::window::block(q), block_word(regs::BlockType::kWindow, q));
    bar.store(regs::window::next(q), last ? 0 : qp::base(q + 1));
    for (uint32_t r = 0; r < regs::kRingsPerQp; ++r) {
      pair.rings[r] = {.tail_word = bar.word(qp::tail(q, r)), .pair = &pair, .number = r};
    }
  }
  read_timers();
  bar.store(id::magic(), regs::kMagic);
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
  // The first page of each block is written by the card, the others by the host.
  const auto clear = [&bar](uint32_t base, uint32_t size_bytes) {
    for (uint32_t at = base + regs::kPageBytes; at < base + size_bytes; at += 4) {
      bar.store(at, 0);
    }
  };
  clear(id::kBase, id::kSizeBytes);
  clear(map::kBase, map::kSizeBytes);
  clear(port::kBase, port::kSizeBytes);
  for (const Pair& pair : core_.pairs) {
    clear(qp::base(pair.number), qp::kSizeBytes);
    clear(regs::window::base(pair.number), regs::window::kSizeBytes);
  }
  default_host_words();
  read_owners();
  reset(0);
}

void Control::read_timers() {
  const Bar& bar = core_.bar;
  core_.timers.response_ns = 1000ull * bar.load(id::response_timeout_us());
  core_.timers.receive_ns = 1000ull * bar.load(id::receive_timeout_us());
  core_.timers.retry_ns = 1000ull * bar.load(id::retry_delay_us());
  core_.timers.retry_limit = bar.load(id::retry_limit());
}

void Control::reset(uint32_t gen_ack) {
  core_.fence();  // the engines write nothing from here on
  engines_.rx.forget();
  engines_.target.forget();
  engines_.tx.forget();
  engines_.transactions.forget();
  engines_.dma.forget();
  engines_.maint.forget();
  for (Pair& pair : core_.pairs) {
    for (Ring& ring : pair.rings) {
      const uint32_t control = core_.bar.load(qp::ring_control(pair.number, ring.number));
      ring = {.tail_word = ring.tail_word,
              .gen = static_cast<uint16_t>(control),
              .pair = &pair,
              .number = ring.number};
      core_.bar.store(qp::ring_status(pair.number, ring.number), 0);
      set_dedicated(ring, false);
    }
    pair.lost_events = 0;
  }
  stopping_ = false;
  core_.bar.store(id::gen_ack(), gen_ack);
}

void Control::scan() {
  Bar& bar = core_.bar;
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
  for (Pair& pair : core_.pairs) {
    scan_pair(pair);
  }
}

void Control::read_owners() {
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
      std::memset(owner->pair_of_mbox, kNoPair, sizeof(owner->pair_of_mbox));
    }
    // The first entry that wants something gets it.
    const auto claim = [pair](uint64_t wanted, uint8_t* receiver) {
      *receiver = wanted != 0 && *receiver == kNoPair ? static_cast<uint8_t>(pair) : *receiver;
    };
    const uint64_t mboxes = bar.load64(map::mbox_lo(i), map::mbox_hi(i));
    for (uint32_t m = 0; m < regs::kMailboxes; ++m) {
      claim(mboxes >> m & 1, &owner->pair_of_mbox[m]);
    }
    claim(map::Entry::doorbells.get(entry), &owner->pair_of_doorbells);
    claim(map::Entry::requests.get(entry), &owner->pair_of_requests);
    core_.last_owner = nullptr;
  }
  core_.sort_plain();
  core_.fence();
  core_.bar.store(map::applied(), apply);
}

void Control::scan_pair(Pair& pair) {
  Bar& bar = core_.bar;
  const uint32_t dest_id = bar.load(id::qp_dest_id(pair.number));
  if (dest_id != pair.dest_id) {
    pair.dest_id = dest_id;
    bar.store(qp::dest_id(pair.number), dest_id);
    if (pair.number == 0) {
      engines_.maint.csr().set_dest_id(dest_id, bar.load(id::dest_id_size()));
    }
  }
  const uint32_t rings = ring_set(pair.number);
  for (Ring& ring : pair.rings) {
    const uint32_t control = bar.load(qp::ring_control(pair.number, ring.number));
    const auto gen = static_cast<uint16_t>(qp::RingControl::gen.get(control));
    if (gen == ring.gen || (rings >> ring.number & 1) == 0) {
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
  const Bar& bar = core_.bar;
  const uint32_t q = ring.pair->number;
  const uint32_t number = ring.number;
  const uint32_t size = bar.load(qp::ring_size(q, number));
  const uint32_t log2 = qp::RingSize::log2.get(size);
  const uint32_t clog2 = qp::RingSize::clog2.get(size);
  const uint32_t irq = bar.load(qp::ring_irq(q, number));
  const uint32_t vectors = core_.irqs == nullptr ? 0 : core_.config.vectors;
  ring.base = nullptr;
  ring.cbase = nullptr;
  ring.head = ring.tail = 0;
  ring.base_iova = bar.load64(qp::ring_base_lo(q, number), qp::ring_base_hi(q, number));
  ring.cbase_iova = bar.load64(qp::ring_cbase_lo(q, number), qp::ring_cbase_hi(q, number));
  if (log2 < kRingLog2Min || log2 > kRingLog2Max || clog2 < log2 || clog2 > kRingLog2Max ||
      ((ring.base_iova | ring.cbase_iova) & 63) != 0 ||
      (qp::RingIrq::enable.get(irq) != 0 && qp::RingIrq::vector.get(irq) >= vectors)) {
    return RingError::kConfig;
  }
  ring.mask = (1u << log2) - 1;
  ring.cmask = (1u << clog2) - 1;
  ring.cshift = static_cast<uint8_t>(clog2);
  ring.head = ring.tail = ring.cidx = bar.load(qp::ring_start(q, number));
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
  const uint64_t clen = kind.centry_bytes * (ring.cmask + 1ull);
  ring.base = len == 0 ? nullptr : core_.host.ring_memory(ring.base_iova, len, false);
  ring.cbase = core_.host.ring_memory(ring.cbase_iova, clen, true);
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
    const uint32_t filter = core_.bar.load(qp::ring_filter(pair.number, ring.number));
    pair.dedicated_source[queue] = core_.bar.load(qp::ring_source(pair.number, ring.number));
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
  core_.tell_status(ring, RingError::kNone);
  core_.read_tail(ring);  // read directly: a tail written before the start is not delayed
}

void Control::stop_ring(Ring& ring, uint16_t gen) {
  if (ring.state == RingState::kRunning || ring.state == RingState::kError) {
    begin_stop(ring);
  }
  ring.gen = gen;
  core_.tell_status(ring, RingError::kNone);
  stopping_ = true;
  finish_stops();
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
    default:
      engines_.rx.stop(ring);
  }
  set_dedicated(ring, false);
}

void Control::finish_stops() {
  stopping_ = false;
  for (Pair& pair : core_.pairs) {
    for (Ring& ring : pair.rings) {
      if (ring.state != RingState::kStopping) {
        continue;
      }
      if (ring.outstanding != 0) {
        stopping_ = true;
        continue;
      }
      ring.state = RingState::kStopped;
      core_.tell_status(ring, RingError::kNone);
    }
  }
}

void Control::check_ring_memory() {
  if (generation_ == core_.host.generation()) {
    return;
  }
  generation_ = core_.host.generation();
  for (Pair& pair : core_.pairs) {
    for (Ring& ring : pair.rings) {
      if (ring.state == RingState::kStopped || ring.cbase == nullptr || map_ring(ring)) {
        continue;
      }
      ring.base = nullptr;
      ring.cbase = nullptr;
      if (ring.running()) {  // otherwise it waits for its stop, or the stop for messages in flight
        core_.fail_ring(ring, RingError::kHostRead, ring.head);
      }
    }
  }
}

void Control::interrupts() {
  if (core_.irqs == nullptr) {
    return;
  }
  interrupt_waits_ = false;
  for (Pair& pair : core_.pairs) {
    for (Ring& ring : pair.rings) {
      if (!ring.irq || !ring.running()) {
        continue;
      }
      const uint32_t arm = core_.bar.load(qp::arm(pair.number, ring.number));
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
        core_.irqs->raise(ring.vector);
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
