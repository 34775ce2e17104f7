#include "pmd/dev/queue_base.hpp"

#include <cerrno>

namespace rio::pmd {
namespace {

/// The hook of polls that find nothing.
PollHook hook_of(Bus& bus, const RingConfig& config) {
  switch (static_cast<regs::Ring>(config.ring)) {
    case regs::Ring::kTx:
      return bus.emulation().step_to_reap_hook(config.qp);
    case regs::Ring::kDma:
    case regs::Ring::kMaint:
    case regs::Ring::kBarrier:
      return bus.poll_hook(config.qp);
    default:  // for traffic from peers alone
      return bus.emulation().step_to_receive_hook(config.qp);
  }
}

}  // namespace

RingTotals& RingTotals::operator+=(const RingTotals& other) {
  stats.messages += other.stats.messages;
  stats.bytes += other.stats.bytes;
  stats.failed += other.stats.failed;
  stats.rejected += other.stats.rejected;
  stats.bad_completions += other.stats.bad_completions;
  mmio.reads += other.mmio.reads;
  mmio.writes += other.mmio.writes;
  return *this;
}

int QueueBase::start(Bus& bus, const Caps& caps, const RingConfig& config, const RingShape& shape) {
  if (const int error = ring_.start(bus, caps, config, shape); error != 0) {
    return error;
  }
  bar_ = bus.bar();
  hook_ = hook_of(bus, config);
  tail_offset_ = ring_.tail_offset();
  cursor_.base = ring_.completions();
  cursor_.mask = (1u << ring_.clog2()) - 1;
  cursor_.phase_shift = 31 - ring_.clog2();
  cursor_.consumed = config.start_index;
  return 0;
}

const uint32_t* QueueBase::last_word(uint32_t index) const {
  const size_t cpl_bytes = ring_.cpl_bytes();
  const auto* const after =
      static_cast<const uint8_t*>(cursor_.base) + ((index & cursor_.mask) + 1) * cpl_bytes;
  return reinterpret_cast<const uint32_t*>(after) - 1;  // the last word of every form of completion
}

uint32_t QueueBase::ready_count() const {
  CompletionCursor cursor = cursor_;
  uint32_t count = 0;
  for (; count <= cursor.mask; ++count, ++cursor.consumed) {
    // relaxed: no other part of the completion is read.
    const uint32_t word = __atomic_load_n(last_word(cursor.consumed), __ATOMIC_RELAXED);
    if (((word ^ cursor.flip()) & kPhaseBit) != 0) {
      break;
    }
  }
  return count;
}

QueueBase::NextCompletion QueueBase::next_completion() const {
  return {last_word(cursor_.consumed), cursor_.flip()};
}

int PostingQueue::restart() {
  if (window_.outstanding() != 0 || ring_.running()) {
    return -EBUSY;
  }
  // Entries of two slots have one completion: now both counts agree again.
  cursor_.consumed = window_.head();
  end_next();
  return ring_.restart(window_.head());
}

int PostingQueue::start(Bus& bus, const Caps& caps, const RingConfig& config,
                        const RingShape& shape) {
  if (const int error = QueueBase::start(bus, caps, config, shape); error != 0) {
    return error;
  }
  // Half of the ring is for entries that the card does not pass over.
  const uint32_t stragglers_max = config.ring == static_cast<uint32_t>(regs::Ring::kTx)
                                      ? std::min(caps.pass_over, (1u << config.log2) / 2)
                                      : 0;
  if (const int error = window_.create(bus, config.log2, config.start_index, stragglers_max);
      error != 0) {
    return error;
  }
  sizes_ = window_.sizes();
  post_end_ = window_.head();
  return 0;
}

}  // namespace rio::pmd
