#include "fpga/model/card/functions.hpp"

#include <algorithm>

namespace rio::model {
namespace {

namespace barrier_words = regs::barrier;
namespace id = regs::id;
namespace map = regs::rx_map;
namespace port = regs::port;
namespace qp = regs::qp;
namespace table = regs::vf;
namespace window = regs::window;

uint32_t block_word(regs::BlockType type, uint32_t instance) {
  return id::Block::type.put(static_cast<uint32_t>(type)) | id::Block::version.put(regs::kEdition) |
         id::Block::instance.put(instance);
}

/// The rings of a queue pair. Only pair 0 has the maintenance ring, which belongs to the physical
/// function.
uint32_t ring_set(const Config& config, uint32_t pair) {
  const uint32_t set = 0xFF00u | 1u << kTxRing | 1u << kSharedRing | 1u << kDoorbellRing |
                       1u << kDmaRing | 1u << kEventRing |
                       (config.barrier ? 1u << kBarrierRing : 0);
  return pair == 0 ? set | 1u << kMaintRing : set;
}

}  // namespace

void clear_block(const Bar& bar, uint32_t base, uint32_t size_bytes) {
  for (uint32_t at = base + regs::kPageBytes; at < base + size_bytes; at += 4) {
    bar.store(at, 0);
  }
}

void clear_pair(const Bar& bar, uint32_t slot) {
  clear_block(bar, qp::base(slot), qp::kSizeBytes);
  clear_block(bar, window::base(slot), window::kSizeBytes);
  clear_block(bar, barrier_words::base(slot), barrier_words::kSizeBytes);
  for (uint32_t at = 0; at < sizeof(regs::PushSlot) << regs::kPushSlotsLog2Max; at += 4) {
    bar.store(qp::base(slot) + regs::kPushSlotsAt + at, 0);
  }
}

void Functions::power_on() {
  for (const Function& function : core_.functions) {
    const bool physical = &function == core_.functions.data();
    tell_identity(function, physical ? core_.config.queue_pairs : 0);
  }
  for (uint32_t vf = 0; vf < vfs_.size(); ++vf) {
    give_all(vf);
  }
  const Bar& bar = core_.bar;
  bar.store(id::next(), map::kBase);
  bar.store(map::block(), block_word(regs::BlockType::kRxMap, 0));
  bar.store(map::next(), port::kBase);
  bar.store(port::block(), block_word(regs::BlockType::kPort, 0));
  const uint32_t behind_rail = vfs_.empty() ? qp::base(0) : table::kBase;
  bar.store(port::next(), core_.config.rail ? regs::rail::kBase : behind_rail);
  if (core_.config.rail) {
    bar.store(regs::rail::block(), block_word(regs::BlockType::kRail, 0));
    bar.store(regs::rail::next(), behind_rail);
  }
  if (!vfs_.empty()) {
    bar.store(table::block(), block_word(regs::BlockType::kVf, 0));
    bar.store(table::next(), qp::base(0));
  }
  tell(id::magic(), regs::kMagic);
}

void Functions::tell_identity(const Function& function, uint32_t pairs) {
  const Bar& bar = function.bar;
  const Config& c = core_.config;
  const bool physical = &function == core_.functions.data();
  bar.store(id::block(), block_word(regs::BlockType::kId, 0));
  bar.store(id::next(), pairs == 0 ? 0 : qp::base(0));
  bar.store(id::hw_version(), id::kHwVersionReset | id::HwVersion::model.put(1));
  bar.store(id::cap_queues(),
            id::CapQueues::qps.put(pairs) | id::CapQueues::ring_log2_min.put(kRingLog2Min) |
                id::CapQueues::ring_log2_max.put(kRingLog2Max) |
                id::CapQueues::vectors.put(function.irqs == nullptr ? 0 : c.vectors) |
                id::CapQueues::vfs.put(physical ? c.vfs : 0));
  bar.store(id::cap_messages(), id::CapMessages::tx_contexts.put(c.tx_contexts) |
                                    id::CapMessages::rx_contexts.put(c.rx_contexts) |
                                    id::CapMessages::letters.put(c.letters) |
                                    id::CapMessages::inline_bytes.put(regs::kInlineBytes));
  bar.store(id::cap_waits(),
            id::CapWaits::poisoned.put(c.poisoned) | id::CapWaits::pass_over.put(c.pass_over));
  bar.store(id::cap_stores(),
            id::CapStores::flights.put(c.flights) | id::CapStores::resting.put(c.resting));
  bar.store(id::cap_align(), id::CapAlign::tx_addr_log2.put(kTxAddrLog2) |
                                 id::CapAlign::shared_addr_log2.put(c.shared_addr_log2) |
                                 id::CapAlign::dedicated_addr_log2.put(c.dedicated_addr_log2) |
                                 id::CapAlign::dedicated_size_log2.put(c.dedicated_size_log2));
  bar.store(id::cap_flags(), id::CapFlags::quirk_last_at_256.put(c.quirk_last_at_256) |
                                 id::CapFlags::quirk_last_full_256.put(c.quirk_last_full_256) |
                                 id::CapFlags::wide.put(1) | id::CapFlags::dma.put(1) |
                                 id::CapFlags::maint.put(physical) | id::CapFlags::atomics.put(1) |
                                 id::CapFlags::vf.put(!physical));
  bar.store(id::cap_timers(), id::CapTimers::tick_ns.put(kTickNs));
  bar.store(id::cap_dma_bytes(), kDmaBytesMax);
  bar.store(id::cap_formats(),
            id::CapFormats::inline_units.put(regs::kEntryUnits) |
                id::CapFormats::cumulative.put(1) | id::CapFormats::short_receive.put(1) |
                id::CapFormats::per_tlp.put(kCplsPerTlp) | id::CapFormats::relaxed.put(1));
  bar.store(id::cap_push(), id::CapPush::slots_log2.put(c.push_slots_log2));
}

void Functions::give(Pair& pair, const Function& function, uint32_t slot, bool last) {
  const Bar& bar = function.bar;
  pair.function = &function;
  pair.slot = slot;
  bar.store(qp::block(slot), block_word(regs::BlockType::kQp, slot));
  bar.store(qp::next(slot), window::base(slot));
  pair.ring_set = ring_set(core_.config, pair.number);
  bar.store(qp::rings(slot), pair.ring_set);
  bar.store(qp::dest_id(slot), pair.dest_id);
  bar.store(window::block(slot), block_word(regs::BlockType::kWindow, slot));
  const uint32_t next = last ? 0 : qp::base(slot + 1);
  const bool has_barriers = core_.config.barrier;
  bar.store(window::next(slot), has_barriers ? barrier_words::base(slot) : next);
  if (has_barriers) {
    bar.store(barrier_words::block(slot), block_word(regs::BlockType::kBarrier, slot));
    bar.store(barrier_words::next(slot), next);
    bar.store(barrier_words::cap(slot),
              barrier_words::Cap::rounds.put(regs::kBarrierRoundsMax) |
                  barrier_words::Cap::slots.put(regs::kBarrierSlots) |
                  barrier_words::Cap::early.put(core_.config.early_notices));
  }
  reset_pair_(pair);
}

void Functions::tell(uint32_t offset, uint32_t value) {
  for (const Function& function : core_.functions) {
    function.bar.store(offset, value);
  }
}

void Functions::scan() {
  for (uint32_t vf = 0; vf < vfs_.size(); ++vf) {
    const uint32_t control = core_.bar.load(table::control(vf));
    if (table::Control::gen.get(control) != table::Control::gen.get(vfs_[vf].control)) {
      change(vf, control);
    }
    const Bar& bar = function(vf).bar;
    const uint32_t wanted = bar.load(id::gen_req());
    if (vfs_[vf].count == 0 || wanted == bar.load(id::gen_ack())) {
      continue;
    }
    for (uint32_t i = 0; i < vfs_[vf].count; ++i) {
      reset_pair_(core_.pairs[vfs_[vf].first + i]);
    }
    bar.store(id::gen_ack(), wanted);
  }
}

void Functions::change(uint32_t vf, uint32_t control) {
  take_back(vf);
  Vf& entry = vfs_[vf];
  entry.control = control;
  const uint32_t qps = core_.bar.load(table::qps(vf));
  const uint32_t first = table::Qps::first.get(qps);
  const uint32_t count = table::Qps::count.get(qps);
  const bool wanted = table::Control::enable.get(control) != 0;
  const bool enabled = wanted && may_have(first, count);
  if (enabled) {
    entry.first = first;
    entry.count = count;
    give_all(vf);
  }
  core_.bar.store(table::status(vf), table::Status::gen.put(table::Control::gen.get(control)) |
                                         table::Status::enable.put(enabled ? 1 : 0) |
                                         table::Status::refused.put(wanted && !enabled ? 1 : 0));
}

/// Show a virtual function what it has, as after power-on.
void Functions::give_all(uint32_t vf) {
  const Bar& bar = function(vf).bar;
  const Vf& entry = vfs_[vf];
  clear_block(bar, id::kBase, id::kSizeBytes);
  bar.store(id::gen_ack(), 0);
  for (uint32_t i = 0; i < entry.count; ++i) {
    clear_pair(bar, i);
    give(core_.pairs[entry.first + i], function(vf), i, i + 1 == entry.count);
  }
  tell_identity(function(vf), entry.count);
}

void Functions::replug(uint32_t vf, const FunctionEnds& ends) {
  // The former ends may have gone already: nothing touches them from here on.
  HostPort& host = core_.vf_hosts[vf];
  host = HostPort(ends.memory, core_.config);
  core_.functions[vf + 1] = {Bar(ends.bar), &host, ends.irqs};
  give_all(vf);
  function(vf).bar.store(id::response_us(), static_cast<uint32_t>(core_.timers.response_ns / 1000));
  function(vf).bar.store(id::magic(), regs::kMagic);
}

bool Functions::may_have(uint32_t first, uint32_t count) const {
  if (first == 0 || count == 0 || first + count > core_.pairs.size()) {
    return false;
  }
  const auto begin = core_.pairs.begin() + first;
  return std::all_of(begin, begin + count, [this](const Pair& pair) {
    return pair.function == core_.functions.data() && !pair.live;
  });
}

void Functions::take_back(uint32_t vf) {
  Vf& entry = vfs_[vf];
  for (uint32_t i = 0; i < entry.count; ++i) {
    Pair& pair = core_.pairs[entry.first + i];
    reset_pair_(pair);  // while it has the words of the virtual function
    give(pair, core_.functions[0], pair.number, &pair == &core_.pairs.back());
  }
  entry = {};
  tell_identity(function(vf), 0);
  function(vf).bar.store(id::gen_ack(), 0);
}

void Functions::take_all_back() {
  for (uint32_t vf = 0; vf < vfs_.size(); ++vf) {
    take_back(vf);
    core_.bar.store(table::status(vf), 0);
  }
}

}  // namespace rio::model
