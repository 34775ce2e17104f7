#include "pmd/dev/queue_pair.hpp"

#include <cerrno>
#include <new>

#include "base/log.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

using RingId = regs::Ring;

constexpr auto kFirstDedicated = static_cast<uint32_t>(RingId::kDedicated0);
constexpr uint32_t kOpenable = ring_bit(RingId::kTx) | ring_bit(RingId::kShared) |
                               ring_bit(RingId::kDoorbell) | ring_bit(RingId::kDma) |
                               ring_bit(RingId::kMaint) | ring_bit(RingId::kEvent) |
                               ring_bit(RingId::kBarrier);

}  // namespace

QueuePair::QueuePair(Card& card, uint32_t qp, const QueuePairConfig& config)
    : card_(card),
      bar_(card.bus().bar()),
      qp_(qp),
      config_(config),
      stop_ms_(stop_limit_ms(bar_.read32(regs::id::response_us()), config.stop_timeout_ms)) {}

int QueuePair::create(Card& card, uint32_t qp, const QueuePairConfig& config,
                      std::unique_ptr<QueuePair>* out) {
  std::unique_ptr<QueuePair> pair(new (std::nothrow) QueuePair(card, qp, config));
  if (pair == nullptr) {
    return -ENOMEM;
  }
  const uint32_t present = pair->bar_.read32(regs::qp::rings(qp));
  uint32_t rings = config.rings;
  if (rings == 0) {
    rings = ring_bit(RingId::kTx) | ring_bit(RingId::kShared) | ring_bit(RingId::kDoorbell) |
            ring_bit(RingId::kEvent);
    rings |= card.caps().dma ? present & ring_bit(RingId::kDma) : 0;
    rings |= card.caps().maint && qp == 0 ? present & ring_bit(RingId::kMaint) : 0;
  }
  rings |= config.barriers ? ring_bit(RingId::kBarrier) : 0;
  if ((rings & ring_bit(RingId::kBarrier)) != 0 && !pair->has_barrier_engine()) {
    return pair->refuse_barriers();
  }
  if ((rings & ~kOpenable) != 0) {
    base::log_error(
        "%s: qp %u: rings 0x%x cannot be opened with the queue pair; dedicated ones open one "
        "by one",
        card.bus().name().c_str(), qp, rings & ~kOpenable);
    return -EINVAL;
  }
  if (const int error = pair->check_idle(present); error != 0) {
    return error;
  }
  if (const int error = pair->start(rings); error != 0) {
    return error;
  }
  *out = std::move(pair);
  return 0;
}

int QueuePair::check_idle(uint32_t rings_present) {
  for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
    if ((rings_present >> ring & 1u) == 0) {
      continue;
    }
    const int busy = Ring::busy(bar_, qp_, ring);
    if (busy < 0) {
      return log_gone(card_.bus().name() + ": qp " + std::to_string(qp_));
    }
    if (busy != 0) {
      base::log_error(
          "%s: qp %u is in use: its ring %s runs; take another queue pair, or have the owner "
          "reset the card",
          card_.bus().name().c_str(), qp_, ring_name(ring));
      return -EBUSY;
    }
  }
  return 0;
}

RingConfig QueuePair::ring_config(uint32_t ring, uint32_t log2) const {
  RingConfig config;
  config.qp = qp_;
  config.ring = ring;
  config.log2 = log2;
  config.start_index = config_.start_index;
  config.timeout_ms = stop_ms_;
  config.irq_vector = config_.irq_vectors[ring];
  config.irq_moderation_us = config_.irq_moderation_us;
  config.push = config_.push && ring == static_cast<uint32_t>(RingId::kTx);
  config.times = config_.receive_times;
  config.barrier_resends = config_.barrier_resends;
  config.barrier_reserve = config_.barrier_reserve;
  return config;
}

int QueuePair::start(uint32_t rings) {
  Bus& bus = card_.bus();
  const Caps& caps = card_.caps();
  int error = 0;
  const auto open = [&](RingId ring, uint32_t log2, auto* queue) {
    using Queue = typename std::remove_pointer_t<decltype(queue)>::element_type;
    if (error == 0 && (rings & ring_bit(ring)) != 0) {
      error = Queue::create(bus, caps, ring_config(static_cast<uint32_t>(ring), log2), queue);
    }
  };
  // Events first, so that the errors of the others are not missed; then receivers before senders.
  open(RingId::kEvent, config_.event_log2, &events_);
  open(RingId::kShared, config_.shared_log2, &shared_);
  open(RingId::kDoorbell, config_.doorbell_log2, &doorbells_);
  open(RingId::kMaint, config_.maint_log2, &maint_);
  open(RingId::kBarrier, config_.barrier_log2, &barriers_);
  open(RingId::kDma, config_.dma_log2, &dma_);
  open(RingId::kTx, config_.tx_log2, &tx_);
  if (error == 0 && windows_ == nullptr && card_.blocks().has_window(qp_)) {
    error = WindowTable::create(bus, caps, qp_, stop_ms_, &windows_);
  }
  return error;
}

/// Call a function with the ring's bit and the queue, for each queue that is open, senders first.
template <class Self, class Visit>
void QueuePair::for_each_open(Self& self, const Visit& visit) {
  const auto look = [&visit](uint32_t bit, auto& queue) {
    if (queue != nullptr) {
      visit(bit, *queue);
    }
  };
  look(ring_bit(RingId::kTx), self.tx_);
  look(ring_bit(RingId::kBarrier), self.barriers_);
  look(ring_bit(RingId::kDma), self.dma_);
  look(ring_bit(RingId::kMaint), self.maint_);
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    look(1u << (kFirstDedicated + i), self.dedicated_[i]);
  }
  look(ring_bit(RingId::kShared), self.shared_);
  look(ring_bit(RingId::kDoorbell), self.doorbells_);
  look(ring_bit(RingId::kEvent), self.events_);
}

uint32_t QueuePair::rings() const {
  uint32_t bits = 0;
  for_each_open(*this, [&bits](uint32_t bit, const auto& /*queue*/) { bits |= bit; });
  return bits;
}

void QueuePair::arm(uint32_t rings) {
  for_each_open(*this, [rings](uint32_t bit, auto& queue) {
    if ((rings & bit) != 0) {
      queue.arm();
    }
  });
}

int QueuePair::open_dedicated(uint32_t i, uint32_t source, uint32_t mbox, DedicatedRxQueue** out) {
  if (i >= regs::kDedicatedQueues) {
    base::log_error("%s: qp %u: dedicated queue %u; there are %u", card_.bus().name().c_str(), qp_,
                    i, regs::kDedicatedQueues);
    return -EINVAL;
  }
  if (dedicated_[i] != nullptr) {
    base::log_error("%s: qp %u: dedicated queue %u is open; close it first",
                    card_.bus().name().c_str(), qp_, i);
    return -EBUSY;
  }
  RingConfig config = ring_config(kFirstDedicated + i, config_.dedicated_log2);
  config.source = source;
  config.mbox = mbox;
  if (const int error = DedicatedRxQueue::create(card_.bus(), card_.caps(), config, &dedicated_[i]);
      error != 0) {
    return error;
  }
  *out = dedicated_[i].get();
  return 0;
}

int QueuePair::refuse_barriers() {
  base::log_error("%s: qp %u has no barrier engine; leave the barrier ring out",
                  card_.bus().name().c_str(), qp_);
  return -ENOTSUP;
}

int QueuePair::open_barriers() {
  if (barriers_ != nullptr) {
    base::log_error("%s: qp %u: the barrier ring is open; close it first",
                    card_.bus().name().c_str(), qp_);
    return -EBUSY;
  }
  return has_barrier_engine() ? start(ring_bit(RingId::kBarrier)) : refuse_barriers();
}

int QueuePair::close_barriers() {
  if (barriers_ == nullptr) {
    return -ENOENT;
  }
  const int error = barriers_->stop();
  if (error == 0 || error == -ENODEV) {
    barriers_.reset();
  }
  return error;
}

int QueuePair::close_dedicated(uint32_t i) {
  if (dedicated(i) == nullptr) {
    base::log_error("%s: qp %u: dedicated queue %u is not open", card_.bus().name().c_str(), qp_,
                    i);
    return -ENOENT;
  }
  const int error = dedicated_[i]->stop();
  if (error == 0 || error == -ENODEV) {
    closed_[i] += dedicated_[i]->totals();
    dedicated_[i].reset();
  }
  return error;
}

RingTotals QueuePair::dedicated_totals(uint32_t i) const {
  RingTotals sum = closed_[i];
  if (dedicated_[i] != nullptr) {
    sum += dedicated_[i]->totals();
  }
  return sum;
}

DedicatedRxQueue* QueuePair::dedicated(uint32_t i) {
  return i < regs::kDedicatedQueues ? dedicated_[i].get() : nullptr;
}

int QueuePair::stop() {
  int first = 0;
  for_each_open(*this, [&](uint32_t /*bit*/, auto& queue) {
    const int error = queue.stop();
    first = first == 0 ? error : first;
  });
  return first;
}

}  // namespace rio::pmd
