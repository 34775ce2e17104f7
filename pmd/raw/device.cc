#include "pmd/raw/device.hpp"

#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/log.hpp"

namespace rio::pmd {

RawDevice::RawDevice(std::string name, std::shared_ptr<EalCard> card)
    : CardUser(std::move(name), std::move(card)), queues_(card_->queue_pairs()) {}

RawDevice::~RawDevice() {
  stop();
}

int RawDevice::reset() {
  resets_ = true;
  const int rc = card_->reset();
  resets_ = false;
  return rc;
}

int RawDevice::hold() {
  if (!started_ || resets_) {
    return 0;
  }
  base::log_error(
      "%s: another device wants to reset the card, while threads may be in bursts of this raw "
      "device: stop it, or reset it instead (rte_rawdev_reset)",
      name_.c_str());
  return -EBUSY;
}

void RawDevice::before_reset() {
  start_again_ = started_;
  stop();
}

int RawDevice::after_reset() {
  return std::exchange(start_again_, false) ? start() : 0;
}

int RawDevice::configure(const rte_raw_rio_config& config) {
  CardArgs wanted = card_->args();
  const auto replace = [](uint32_t value, uint32_t* place) {
    *place = value != 0 ? value : *place;
  };
  replace(config.response_timeout_us, &wanted.card.response_timeout_us);
  replace(config.receive_timeout_us, &wanted.card.receive_timeout_us);
  replace(config.retry_delay_us, &wanted.card.retry_delay_us);
  wanted.card.retry_limit = config.retry_limit;
  wanted.base_dest_id = config.base_dest_id;
  const uint64_t most_us = uint64_t{2} * wanted.card.response_timeout_us;
  if (config.receive_timeout_us == 0 && wanted.card.receive_timeout_us > most_us) {
    wanted.card.receive_timeout_us = static_cast<uint32_t>(most_us);
  }
  resets_ = true;
  const int rc = card_->configure(wanted);
  resets_ = false;
  return rc;
}

rte_raw_rio_queue_conf RawDevice::default_conf() const {
  const QueuePairConfig& queues = card_->args().queues;
  rte_raw_rio_queue_conf conf{};
  conf.tx_log2 = static_cast<uint8_t>(queues.tx_log2);
  conf.shared_log2 = static_cast<uint8_t>(queues.shared_log2);
  conf.dedicated_log2 = static_cast<uint8_t>(queues.dedicated_log2);
  conf.doorbell_log2 = static_cast<uint8_t>(queues.doorbell_log2);
  conf.dma_log2 = static_cast<uint8_t>(queues.dma_log2);
  conf.event_log2 = static_cast<uint8_t>(queues.event_log2);
  return conf;
}

int RawDevice::check_conf(uint32_t qp, const rte_raw_rio_queue_conf& conf) {
  const Caps& caps = card()->caps();
  const std::pair<const char*, uint32_t> sizes[] = {{"tx_log2", conf.tx_log2},
                                                    {"shared_log2", conf.shared_log2},
                                                    {"dedicated_log2", conf.dedicated_log2},
                                                    {"doorbell_log2", conf.doorbell_log2},
                                                    {"dma_log2", conf.dma_log2},
                                                    {"event_log2", conf.event_log2},
                                                    {"barrier_log2", conf.barrier_log2}};
  for (const auto& [key, log2] : sizes) {
    if (key == sizes[6].first && log2 == 0) {
      continue;  // no barrier ring
    }
    if (log2 < caps.ring_log2_min || log2 > caps.ring_log2_max) {
      base::log_error("%s: queue pair %u: %s is %u; this card takes %u to %u", name_.c_str(), qp,
                      key, log2, caps.ring_log2_min, caps.ring_log2_max);
      return -EINVAL;
    }
  }
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    if (conf.dedicated[i].open != 0 && conf.dedicated[i].mbox >= regs::kMultiMailboxes) {
      base::log_error("%s: queue pair %u: dedicated queue %u has mailbox %u; allowed are 0 to %u",
                      name_.c_str(), qp, i, conf.dedicated[i].mbox, regs::kMultiMailboxes - 1);
      return -EINVAL;
    }
  }
  return 0;
}

int RawDevice::setup_queue(uint32_t qp, const rte_raw_rio_queue_conf* conf) {
  if (card() == nullptr) {
    return -ENODEV;
  }
  if (started_ && qp < queue_pairs()) {
    base::log_error("%s: stop the device before setting up queue pair %u", name_.c_str(), qp);
    return -EBUSY;
  }
  const rte_raw_rio_queue_conf wanted = conf != nullptr ? *conf : default_conf();
  int rc = check_conf(qp, wanted);
  rc = rc != 0 ? rc : card_->claim(qp, *this);
  if (rc == 0) {
    queues_[qp].conf = wanted;
  }
  return rc;
}

int RawDevice::release_queue(uint32_t qp) {
  if (qp >= queue_pairs()) {
    return -EINVAL;
  }
  if (started_ && queues_[qp].pair != nullptr) {
    base::log_error("%s: stop the device before releasing queue pair %u", name_.c_str(), qp);
    return -EBUSY;
  }
  card_->release(qp, *this);
  return 0;
}

int RawDevice::open_queue(uint32_t qp) {
  Queue& queue = queues_[qp];
  QueuePairConfig config;
  config.tx_log2 = queue.conf.tx_log2;
  config.shared_log2 = queue.conf.shared_log2;
  config.dedicated_log2 = queue.conf.dedicated_log2;
  config.doorbell_log2 = queue.conf.doorbell_log2;
  config.dma_log2 = queue.conf.dma_log2;
  config.event_log2 = queue.conf.event_log2;
  config.barriers = queue.conf.barrier_log2 != 0;
  config.barrier_log2 = queue.conf.barrier_log2;
  config.push = card_->args().queues.push;
  config.irq_moderation_us = queue.conf.irq_moderation_us;
  int rc = queue.irq.prepare(bus(), card()->caps(), qp, queue.conf.irq_rings, &config);
  rc = rc != 0 ? rc : card()->open_queue_pair(qp, config, &queue.pair);
  for (uint32_t i = 0; rc == 0 && i < regs::kDedicatedQueues; ++i) {
    const rte_raw_rio_dedicated_conf& wanted = queue.conf.dedicated[i];
    DedicatedRxQueue* opened = nullptr;
    rc = wanted.open == 0 ? 0 : queue.pair->open_dedicated(i, wanted.source, wanted.mbox, &opened);
  }
  return rc;
}

int RawDevice::start() {
  if (card() == nullptr) {
    return -ENODEV;
  }
  for (uint32_t qp = 0; qp < queue_pairs(); ++qp) {
    if (!card_->has(qp, *this)) {
      continue;
    }
    if (const int rc = open_queue(qp); rc != 0) {
      base::log_error("%s: queue pair %u did not start (%d)", name_.c_str(), qp, rc);
      stop();
      return rc;
    }
  }
  started_ = true;
  return 0;
}

void RawDevice::stop() {
  for (uint32_t qp = 0; qp < queue_pairs(); ++qp) {
    queues_[qp].past = totals(qp);
    queues_[qp].pair.reset();
  }
  started_ = false;
}

QueuePair* RawDevice::queue_pair(uint32_t qp) {
  return qp < queue_pairs() ? queues_[qp].pair.get() : nullptr;
}

rte_raw_rio_queue_conf RawDevice::queue_conf(uint32_t qp) const {
  return card_->has(qp, *this) ? queues_[qp].conf : default_conf();
}

QueueTotals RawDevice::totals(uint32_t qp) {
  Queue& queue = queues_[qp];
  QueueTotals sum = queue.past;
  if (queue.pair == nullptr) {
    return sum;
  }
  QueuePair& pair = *queue.pair;
  sum[0] += pair.tx().totals();
  sum[1] += pair.shared().totals();
  sum[2] += pair.doorbells().totals();
  if ((pair.rings() & ring_bit(regs::Ring::kDma)) != 0) {
    sum[3] += pair.dma().totals();
  }
  sum[4] += pair.events().totals();
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    sum[5] += pair.dedicated_totals(i);
  }
  if ((pair.rings() & ring_bit(regs::Ring::kBarrier)) != 0) {
    sum[6] += pair.barriers().totals();
  }
  return sum;
}

int register_device(rte_device& parent, const char* name, const char* driver,
                    std::shared_ptr<EalCard> card) {
  // No private memory from rawdev: it would be freed by rte_free, and the object is C++.
  rte_rawdev* const raw = rte_rawdev_pmd_allocate(name, 0, card->bus().numa_node());
  if (raw == nullptr) {
    base::log_error("%s: no room for a raw device of this name (at most %d devices)", name,
                    RTE_RAWDEV_MAX_DEVS);
    return -ENOMEM;
  }
  raw->device = &parent;
  raw->driver_name = driver;
  raw->dev_ops = &kRawOps;
  raw->dev_private = new RawDevice(name, std::move(card));
  return 0;
}

int unregister_device(const char* name) {
  const std::lock_guard guard(control_lock());
  rte_rawdev* const raw = name != nullptr ? rte_rawdev_pmd_get_named_dev(name) : nullptr;
  if (raw == nullptr) {
    return -ENODEV;
  }
  if (const RawDevice* const device = find_device(raw->dev_id);
      device != nullptr && device->holders > 0) {
    base::log_error("%s: cannot be unplugged: the program (process %d) uses it; end it first", name,
                    static_cast<int>(getpid()));
    return -EBUSY;
  }
  if (raw->started != 0) {
    rte_rawdev_stop(raw->dev_id);
  }
  return rte_rawdev_pmd_release(raw);
}

RawDevice* find_device(uint16_t dev_id) {
  if (dev_id >= RTE_RAWDEV_MAX_DEVS) {
    return nullptr;
  }
  const rte_rawdev& raw = rte_rawdevs[dev_id];
  const bool ours = raw.attached == RTE_RAWDEV_ATTACHED && raw.dev_ops == &kRawOps;
  return ours ? static_cast<RawDevice*>(raw.dev_private) : nullptr;
}

}  // namespace rio::pmd
