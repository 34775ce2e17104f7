#include "apps/testpmd/driver_counts.hpp"

namespace rio::testpmd {
namespace {

template <typename Queue>
void add_bar(const Queue& queue, DriverCounts* sum) {
  const pmd::MmioCounts bar = queue.mmio();
  sum->bar_reads += bar.reads;
  sum->bar_writes += bar.writes;
  const pmd::QueueStats stats = queue.stats();
  sum->rejected += stats.rejected;
  sum->bad_completions += stats.bad_completions;
}

}  // namespace

DriverCounts& DriverCounts::operator+=(const DriverCounts& other) {
  bar_reads += other.bar_reads;
  bar_writes += other.bar_writes;
  tx_messages += other.tx_messages;
  tx_failed += other.tx_failed;
  rx_messages += other.rx_messages;
  rx_failed += other.rx_failed;
  rejected += other.rejected;
  bad_completions += other.bad_completions;
  return *this;
}

DriverCounts DriverCounts::since(const DriverCounts& before) const {
  return {.bar_reads = bar_reads - before.bar_reads,
          .bar_writes = bar_writes - before.bar_writes,
          .tx_messages = tx_messages - before.tx_messages,
          .tx_failed = tx_failed - before.tx_failed,
          .rx_messages = rx_messages - before.rx_messages,
          .rx_failed = rx_failed - before.rx_failed,
          .rejected = rejected - before.rejected,
          .bad_completions = bad_completions - before.bad_completions};
}

DriverCounts count_driver(const Port& port) {
  DriverCounts sum;
  for (uint32_t i = 0; i < port.queue_pairs(); ++i) {
    pmd::QueuePair& pair = port.pair(i);
    add_bar(pair.tx(), &sum);
    add_bar(pair.shared(), &sum);
    add_bar(pair.doorbells(), &sum);
    add_bar(pair.dma(), &sum);
    for (uint32_t queue = 0; queue < regs::kDedicatedQueues; ++queue) {
      if (const pmd::DedicatedRxQueue* dedicated = pair.dedicated(queue); dedicated != nullptr) {
        add_bar(*dedicated, &sum);
      }
    }
    sum.tx_messages += pair.tx().stats().messages;
    sum.tx_failed += pair.tx().stats().failed;
    sum.rx_messages += pair.shared().stats().messages;
    sum.rx_failed += pair.shared().stats().failed;
  }
  return sum;
}

}  // namespace rio::testpmd
