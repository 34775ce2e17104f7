#include <cerrno>
#include <utility>

#include "pmd/bus/log.hpp"
#include "pmd/raw/device.hpp"

namespace rio::pmd {

rte_raw_rio_queue_conf RawDevice::default_conf() const {
  rte_raw_rio_queue_conf conf{};
  conf.tx_log2 = static_cast<uint8_t>(args_.tx_log2);
  conf.shared_log2 = static_cast<uint8_t>(args_.shared_log2);
  conf.dedicated_log2 = static_cast<uint8_t>(args_.dedicated_log2);
  conf.doorbell_log2 = static_cast<uint8_t>(args_.doorbell_log2);
  conf.dma_log2 = static_cast<uint8_t>(args_.dma_log2);
  conf.event_log2 = static_cast<uint8_t>(args_.event_log2);
  return conf;
}

int RawDevice::check_conf(uint32_t qp, const rte_raw_rio_queue_conf& conf) {
  const Caps& caps = card_->caps();
  const std::pair<const char*, uint32_t> sizes[] = {{"tx_log2", conf.tx_log2},
                                                    {"shared_log2", conf.shared_log2},
                                                    {"dedicated_log2", conf.dedicated_log2},
                                                    {"doorbell_log2", conf.doorbell_log2},
                                                    {"dma_log2", conf.dma_log2},
                                                    {"event_log2", conf.event_log2}};
  for (const auto& [key, log2] : sizes) {
    if (log2 < caps.ring_log2_min || log2 > caps.ring_log2_max) {
      log_error("%s: queue pair %u: %s is %u; this card takes %u to %u", name_.c_str(), qp, key,
                log2, caps.ring_log2_min, caps.ring_log2_max);
      return -EINVAL;
    }
  }
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    if (conf.dedicated[i].open != 0 && conf.dedicated[i].mbox >= regs::kMultiMailboxes) {
      log_error("%s: queue pair %u: dedicated queue %u has mailbox %u; 0 to %u are possible",
                name_.c_str(), qp, i, conf.dedicated[i].mbox, regs::kMultiMailboxes - 1);
      return -EINVAL;
    }
  }
  return 0;
}

int RawDevice::setup_queue(uint32_t qp, const rte_raw_rio_queue_conf* conf) {
  if (card_ == nullptr) {
    return -ENODEV;
  }
  if (qp >= queue_pairs()) {
    log_error("%s: no queue pair %u: the card has 0 to %u", name_.c_str(), qp, queue_pairs() - 1);
    return -EINVAL;
  }
  if (started_) {
    log_error("%s: stop the device before setting up queue pair %u", name_.c_str(), qp);
    return -EBUSY;
  }
  const rte_raw_rio_queue_conf wanted = conf != nullptr ? *conf : default_conf();
  if (const int rc = check_conf(qp, wanted); rc != 0) {
    return rc;
  }
  Queue& queue = queues_[qp];
  if (!queue.claimed) {
    OwnerToken owner = 0;
    const int rc = shared_.claim(qp, *bus_, &owner);
    if (rc == -EBUSY) {
      log_error("%s: queue pair %u belongs to process %u: take another one, or end that process",
                name_.c_str(), qp, token_pid(owner));
    }
    if (rc != 0) {
      return rc;
    }
  }
  queue.claimed = true;
  queue.conf = wanted;
  return 0;
}

int RawDevice::release_queue(uint32_t qp) {
  if (qp >= queue_pairs()) {
    return -EINVAL;
  }
  if (started_ && queues_[qp].pair != nullptr) {
    log_error("%s: stop the device before releasing queue pair %u", name_.c_str(), qp);
    return -EBUSY;
  }
  if (std::exchange(queues_[qp].claimed, false)) {
    shared_.release(qp);
  }
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
  config.irq_moderation_us = queue.conf.irq_moderation_us;
  if (const int rc = queue.irq.prepare(*bus_, card_->caps(), qp, queue.conf.irq_rings, &config);
      rc != 0) {
    return rc;
  }
  if (const int rc = card_->open_queue_pair(qp, config, &queue.pair); rc != 0) {
    return rc;
  }
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    const rte_raw_rio_dedicated_conf& wanted = queue.conf.dedicated[i];
    if (wanted.open == 0) {
      continue;
    }
    DedicatedRxQueue* opened = nullptr;
    if (const int rc = queue.pair->open_dedicated(i, wanted.source, wanted.mbox, &opened);
        rc != 0) {
      return rc;
    }
  }
  return 0;
}

void RawDevice::close_queue(uint32_t qp) {
  Queue& queue = queues_[qp];
  if (queue.pair == nullptr) {
    return;
  }
  queue.past = totals(qp);
  queue.pair.reset();
}

int RawDevice::start() {
  if (card_ == nullptr) {
    return -ENODEV;
  }
  for (uint32_t qp = 0; qp < queue_pairs(); ++qp) {
    if (!queues_[qp].claimed) {
      continue;
    }
    if (const int rc = open_queue(qp); rc != 0) {
      log_error("%s: queue pair %u does not start (%d)", name_.c_str(), qp, rc);
      stop();
      return rc;
    }
  }
  started_ = true;
  return 0;
}

void RawDevice::stop() {
  for (uint32_t qp = 0; qp < queue_pairs(); ++qp) {
    close_queue(qp);
  }
  started_ = false;
}

int RawDevice::claim_rest(std::vector<uint32_t>* taken) {
  for (uint32_t qp = 0; qp < queue_pairs(); ++qp) {
    if (queues_[qp].claimed) {
      continue;
    }
    OwnerToken owner = 0;
    if (const int rc = shared_.claim(qp, *bus_, &owner); rc != 0) {
      if (rc == -EBUSY) {
        log_error("%s: cannot reset the card: queue pair %u belongs to process %u", name_.c_str(),
                  qp, token_pid(owner));
      }
      return rc;
    }
    taken->push_back(qp);
  }
  return 0;
}

int RawDevice::reset() {
  if (!primary_) {
    log_error("%s: only the primary process may reset the card", name_.c_str());
    return -EPERM;
  }
  std::vector<uint32_t> taken;
  int rc = claim_rest(&taken);
  if (rc == 0) {
    const bool was_started = started_;
    stop();
    card_.reset();
    rc = open_card(queue_pairs());
    if (rc == 0 && was_started) {
      rc = start();
    }
  }
  for (const uint32_t qp : taken) {
    shared_.release(qp);
  }
  return rc;
}

int RawDevice::configure(const rte_raw_rio_config& config) {
  constexpr uint32_t kMostUs = 10'000'000;
  RawArgs wanted = args_;
  const auto replace = [](uint32_t value, uint32_t* place) {
    *place = value != 0 ? value : *place;
  };
  replace(config.response_timeout_us, &wanted.response_timeout_us);
  replace(config.receive_timeout_us, &wanted.receive_timeout_us);
  replace(config.retry_delay_us, &wanted.retry_delay_us);
  wanted.retry_limit = config.retry_limit;
  wanted.base_dest_id = config.base_dest_id;
  const uint64_t most_us = uint64_t{2} * wanted.response_timeout_us;
  if (config.receive_timeout_us == 0 && wanted.receive_timeout_us > most_us) {
    wanted.receive_timeout_us = static_cast<uint32_t>(most_us);
  }
  if (wanted.response_timeout_us > kMostUs || wanted.receive_timeout_us > most_us ||
      wanted.retry_delay_us > kMostUs / 10 || wanted.base_dest_id > 65535 - queue_pairs()) {
    log_error(
        "%s: configuration refused: destID %u (0 to %u), time-outs %u (1 to %u) and %u us "
        "(1 to twice the first), retry delay %u us (1 to %u)",
        name_.c_str(), wanted.base_dest_id, 65535 - queue_pairs(), wanted.response_timeout_us,
        kMostUs, wanted.receive_timeout_us, wanted.retry_delay_us, kMostUs / 10);
    return -EINVAL;
  }
  const RawArgs before = std::exchange(args_, wanted);
  const int rc = reset();
  if (rc != 0) {
    args_ = before;
  }
  return rc;
}

QueuePair* RawDevice::queue_pair(uint32_t qp) {
  return qp < queue_pairs() ? queues_[qp].pair.get() : nullptr;
}

bool RawDevice::claimed(uint32_t qp) const {
  return qp < queues_.size() && queues_[qp].claimed;
}

rte_raw_rio_queue_conf RawDevice::queue_conf(uint32_t qp) const {
  return claimed(qp) ? queues_[qp].conf : default_conf();
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
  return sum;
}

int RawDevice::set_faults(uint64_t seed, double rate) {
  if (!(rate >= 0.0 && rate <= 1.0)) {
    log_error("%s: fault rate %g: allowed is 0.0 to 1.0", name_.c_str(), rate);
    return -EINVAL;
  }
  const int rc = bus_->set_faults(seed, rate);
  if (rc == -ENOTSUP && rate == 0) {
    return 0;  // no faults of ours to switch off
  }
  if (rc != 0) {
    log_error("%s: only the process with the emulated card has its fault injector", name_.c_str());
    return rc;
  }
  args_.emu.fault_seed = seed;
  args_.emu.fault_rate = rate;
  return 0;
}

}  // namespace rio::pmd
