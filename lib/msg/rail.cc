#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

/// Create the DMA object. @return null: the card has no DMA queue.
[[nodiscard]] std::unique_ptr<Dma> make_dma(Endpoint& endpoint) {
  const bool there = (endpoint.queues().rings() & pmd::ring_bit(regs::Ring::kDma)) != 0;
  return there ? std::make_unique<Dma>(endpoint) : nullptr;
}

}  // namespace

Rail::Rail(uint32_t number, Endpoint& card, const PortObjects& port)
    : endpoint(card),
      dma(make_dma(card)),
      outbox(card, failures),
      intake(port, *this),
      buffers(card, port.buffers),
      index(number),
      health(card),
      memory(card),
      silence(port, *this),
      failures(port, *this),
      shown(card),
      queues(port, *this) {}

uint64_t Rail::activity() const {
  uint64_t sum = 0;
  const auto add = [&](const pmd::QueueStats& stats) { sum += stats.messages + stats.failed; };
  add(endpoint.tx().stats());
  add(endpoint.shared().stats());
  add(endpoint.events().stats());
  if (dma != nullptr) {
    add(endpoint.dma().stats());
  }
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    add(endpoint.queues().dedicated_totals(i).stats);
  }
  return sum;
}

void Rail::add_counts(RailStats* out) const {
  const pmd::QueueStats sent = endpoint.tx().stats();
  out->sent += sent.messages;
  out->sent_bytes += sent.bytes;
  out->failed += sent.failed;
  const auto add_received = [&](const pmd::QueueStats& stats) {
    out->received += stats.messages;
    out->received_bytes += stats.bytes;
  };
  add_received(endpoint.shared().stats());
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    add_received(endpoint.queues().dedicated_totals(i).stats);
  }
  if (dma != nullptr) {
    const pmd::QueueStats remote = endpoint.dma().stats();
    out->remote += remote.messages;
    out->remote_bytes += remote.bytes;
    out->failed += remote.failed;
  }
  out->again += outbox.again();
  out->gone = health.error() != 0 ? 1 : 0;
}

int Rails::error_of_all() const {
  for (const Rail* const rail : *this) {
    if (rail->health.error() == 0) {
      return 0;
    }
  }
  return first_.health.error();
}

int Rail::start() {
  const int rc = buffers.start();
  return rc != 0 ? rc : outbox.start();
}

int Rail::start_large() {
  const int rc = slots.create(endpoint);
  if (rc != 0) {
    return rc;
  }
  shown.open(slots.iova(0));
  return queues.create();
}

}  // namespace rio::msg
