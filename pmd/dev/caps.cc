#include "pmd/dev/caps.hpp"

#include <algorithm>
#include <cerrno>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {

int read_caps(Mmio& bar, Caps* out, const char** wrong) {
  using regs::id::CapAlign;
  using regs::id::CapFlags;
  using regs::id::CapMessages;
  using regs::id::CapQueues;
  using regs::id::CapWaits;
  const uint32_t queues = bar.read32(regs::id::cap_queues());
  const uint32_t messages = bar.read32(regs::id::cap_messages());
  const uint32_t align = bar.read32(regs::id::cap_align());
  const uint32_t flags = bar.read32(regs::id::cap_flags());
  const uint32_t timers = bar.read32(regs::id::cap_timers());
  const uint32_t dma_bytes = bar.read32(regs::id::cap_dma_bytes());
  const uint32_t formats = bar.read32(regs::id::cap_formats());
  const uint32_t push = regs::id::CapPush::slots_log2.get(bar.read32(regs::id::cap_push()));
  const uint32_t hw_version = bar.read32(regs::id::hw_version());

  Caps caps{};
  caps.queue_pairs = CapQueues::qps.get(queues);
  caps.ring_log2_min = CapQueues::ring_log2_min.get(queues);
  caps.ring_log2_max = CapQueues::ring_log2_max.get(queues);
  caps.vectors = CapQueues::vectors.get(queues);
  caps.tx_contexts = CapMessages::tx_contexts.get(messages);
  caps.rx_contexts = CapMessages::rx_contexts.get(messages);
  caps.letters = CapMessages::letters.get(messages);
  caps.order_depth = CapMessages::order_depth.get(messages);
  caps.pass_over = CapWaits::pass_over.get(bar.read32(regs::id::cap_waits()));
  caps.inline_bytes = std::min(CapMessages::inline_bytes.get(messages), regs::kInlineBytes);
  caps.inline_units =
      std::clamp(regs::id::CapFormats::inline_units.get(formats), 1u, regs::kEntryUnits);
  caps.tx_addr_align = 1u << CapAlign::tx_addr_log2.get(align);
  caps.shared_addr_align = 1u << CapAlign::shared_addr_log2.get(align);
  caps.dedicated_addr_align = 1u << CapAlign::dedicated_addr_log2.get(align);
  caps.dedicated_size_align = 1u << CapAlign::dedicated_size_log2.get(align);
  caps.dma_addr_align = 1u << CapAlign::dma_addr_log2.get(align);
  caps.dma_bytes = dma_bytes;
  caps.tick_ns = regs::id::CapTimers::tick_ns.get(timers);
  caps.quirk_last_at_256 = CapFlags::quirk_last_at_256.get(flags) != 0;
  caps.quirk_last_full_256 = CapFlags::quirk_last_full_256.get(flags) != 0;
  caps.wide = CapFlags::wide.get(flags) != 0;
  caps.cumulative = regs::id::CapFormats::cumulative.get(formats) != 0;
  caps.relaxed = regs::id::CapFormats::relaxed.get(formats) != 0;
  caps.short_receive = regs::id::CapFormats::short_receive.get(formats) != 0;
  caps.dma = CapFlags::dma.get(flags) != 0;
  caps.maint = CapFlags::maint.get(flags) != 0;
  caps.atomics = CapFlags::atomics.get(flags) != 0;
  caps.is_vf = CapFlags::vf.get(flags) != 0;
  caps.vfs = std::min(CapQueues::vfs.get(queues), regs::kMaxVfs);
  caps.push_slots = push == 0 ? 0 : 1u << push;
  caps.is_model = regs::id::HwVersion::model.get(hw_version) != 0;

  const struct {
    bool broken;
    const char* name;
  } rules[] = {{(caps.queue_pairs == 0 && !caps.is_vf) || caps.queue_pairs > regs::kMaxQps,
                "number of queue pairs"},
               {caps.ring_log2_min > caps.ring_log2_max || caps.ring_log2_max == 0, "ring sizes"},
               {caps.letters == 0 || caps.letters > regs::kLetters, "number of letters"},
               {caps.dedicated_size_align > regs::kMessageBytesMax, "alignment of dedicated sizes"},
               {push > regs::kPushSlotsLog2Max, "number of slots"}};
  for (const auto& rule : rules) {
    if (rule.broken) {
      *wrong = rule.name;
      return -EPROTO;
    }
  }
  *out = caps;
  return 0;
}

int read_barrier_caps(Mmio& bar, uint32_t qp, Caps* out, const char** wrong) {
  using regs::barrier::Cap;
  const uint32_t word = bar.read32(regs::barrier::cap(qp));
  const uint32_t rounds = Cap::rounds.get(word);
  const uint32_t slots = Cap::slots.get(word);
  if (rounds == 0 || rounds > regs::kBarrierRoundsMax || slots > regs::kBarrierSlots) {
    *wrong = "number of rounds or slots of the barrier engine";
    return -EPROTO;
  }
  out->barrier_rounds = rounds;
  out->barrier_slots = slots;
  out->barrier_early = Cap::early.get(word);
  return 0;
}

}  // namespace rio::pmd
