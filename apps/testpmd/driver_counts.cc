#include "apps/testpmd/driver_counts.hpp"

#include <rte_rawdev.h>

#include "apps/testpmd/test_port.hpp"

namespace rio::testpmd {
namespace {

void add(const pmd::RingTotals& ring, DriverCounts* sum) {
  sum->bar_reads += ring.mmio.reads;
  sum->bar_writes += ring.mmio.writes;
  sum->rejected += ring.stats.rejected;
  sum->bad_completions += ring.stats.bad_completions;
}

/// Of free-running counters of 32 bits.
pmd::PortCounters since(const pmd::PortCounters& now, const pmd::PortCounters& before) {
  return {.tx_packets = now.tx_packets - before.tx_packets,
          .rx_packets = now.rx_packets - before.rx_packets,
          .tx_retries = now.tx_retries - before.tx_retries,
          .rx_retries = now.rx_retries - before.rx_retries,
          .rx_errors = now.rx_errors - before.rx_errors,
          .tx_timeouts = now.tx_timeouts - before.tx_timeouts,
          .rx_timeouts = now.rx_timeouts - before.rx_timeouts,
          .rx_unmapped = now.rx_unmapped - before.rx_unmapped};
}

}  // namespace

DriverCounts& DriverCounts::operator+=(const DriverCounts& other) {
  for (const auto& [name, count] : kDriverCounts) {
    this->*count += other.*count;
  }
  return *this;
}

DriverCounts DriverCounts::since(const DriverCounts& before) const {
  DriverCounts d = *this;
  for (const auto& [name, count] : kDriverCounts) {
    d.*count -= before.*count;
  }
  return d;
}

DriverCounts count_driver(const TestPort& port) {
  const std::lock_guard guard(port.queues_lock);
  DriverCounts sum;
  for (uint32_t i = 0; i < port.queue_pairs(); ++i) {
    pmd::QueuePair& pair = port.pair(i);
    add(pair.tx().totals(), &sum);
    add(pair.shared().totals(), &sum);
    add(pair.doorbells().totals(), &sum);
    add(pair.events().totals(), &sum);
    if ((pair.rings() & pmd::ring_bit(regs::Ring::kDma)) != 0) {
      add(pair.dma().totals(), &sum);
    }
    if ((pair.rings() & pmd::ring_bit(regs::Ring::kMaint)) != 0) {
      add(pair.maint().totals(), &sum);
    }
    for (uint32_t queue = 0; queue < regs::kDedicatedQueues; ++queue) {
      const pmd::RingTotals dedicated = pair.dedicated_totals(queue);
      add(dedicated, &sum);
      sum.rx_messages += dedicated.stats.messages;
      sum.rx_failed += dedicated.stats.failed;
    }
    sum.tx_messages += pair.tx().stats().messages;
    sum.tx_failed += pair.tx().stats().failed;
    sum.rx_messages += pair.shared().stats().messages;
    sum.rx_failed += pair.shared().stats().failed;
  }
  return sum;
}

PortCounts count_port(const TestPort& port) {
  return {.driver = count_driver(port).since(port.counted_before.driver),
          .link = since(port.card().counters(), port.counted_before.link)};
}

int clear_counts(TestPort& port) {
  port.counted_before = {.driver = count_driver(port), .link = port.card().counters()};
  const std::lock_guard guard(port.queues_lock);
  return rte_rawdev_xstats_reset(port.dev_id(), nullptr, 0);
}

}  // namespace rio::testpmd
