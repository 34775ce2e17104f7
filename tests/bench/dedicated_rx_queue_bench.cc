#include "pmd/dev/dedicated_rx_queue.hpp"

#include "tests/bench/driver_rounds.hpp"

namespace rio::bench {
namespace {

/// Posts and completes a ring full of entries, in bursts of range(0).
void dedicated_driver(benchmark::State& state) {
  const std::vector<pmd::DedicatedEntry> entries(kRound,
                                                 {.iova = 4096, .cookie = 1, .size_bytes = 256});
  std::vector<pmd::EntryDone> done(kRound);
  driver_rounds<pmd::DedicatedRxQueue, regs::EntryCpl>(
      state, regs::Ring::kDedicated0,
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.post(&entries[i], n); },
      [](regs::EntryCpl* cpl, uint32_t i) {
        cpl->index = i;
        cpl->bytes = 64;
      },
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.reap(&done[i], n); });
}

/// Messages of range(0) bytes into four dedicated queues. Everything is timed: posting, sending,
/// both cards, completing.
void dedicated_emulated(benchmark::State& state) {
  constexpr uint32_t kQueues = regs::kMultiMailboxes;
  constexpr uint32_t kStride = regs::kMessageBytesMax;
  EmulatedPair cards;
  Port& from = cards.port(0);
  Port& to = cards.port(1);
  const auto size_bytes = static_cast<uint32_t>(state.range(0));
  pmd::DmaMemory memory;
  if (const int rc = to.bus->dma_alloc((kQueues * kBurst + 1) * kStride, kStride, &memory);
      rc != 0) {
    give_up("memory", rc);
  }
  pmd::DedicatedRxQueue* queues[kQueues];
  std::vector<pmd::DedicatedEntry> entries(kQueues * kBurst);
  std::vector<pmd::TxMessage> messages(kQueues * kBurst);
  for (uint32_t i = 0; i < kQueues * kBurst; ++i) {
    entries[i] = {.iova = memory.iova + uint64_t{i} * kStride,
                  .cookie = i,
                  .size_bytes = (size_bytes + 255) & ~255u};
    messages[i] = {.iova = memory.iova + uint64_t{kQueues} * kBurst * kStride,
                   .cookie = i,
                   .dest_id = from.peer_id,
                   .length_bytes = static_cast<uint16_t>(size_bytes),
                   .mbox = static_cast<uint8_t>(i % kQueues),
                   .flags = 0};
  }
  for (uint32_t i = 0; i < kQueues; ++i) {
    if (const int rc = to.pair->open_dedicated(i, from.dest_id, i, &queues[i]); rc != 0) {
      give_up("open_dedicated", rc);
    }
  }
  Timer timer(state);
  for (auto _ : state) {
    pmd::EntryDone done[kBurst];
    pmd::TxDone sent[kBurst];
    timer.start();
    for (uint32_t i = 0; i < kQueues; ++i) {
      queues[i]->post(&entries[i * kBurst], kBurst);
      from.tx().burst(&messages[i * kBurst], kBurst);
    }
    for (uint32_t left = kQueues * kBurst; left > 0;) {
      for (pmd::DedicatedRxQueue* queue : queues) {
        left -= queue->reap(done, kBurst);
      }
      from.tx().reap(sent, kBurst);
    }
    timer.stop();
    while (from.tx().outstanding() != 0) {
      from.tx().reap(sent, kBurst);
      cards.step();
    }
    timer.done(kQueues * kBurst);
  }
  state.SetBytesProcessed(state.items_processed() * size_bytes);
}

BENCHMARK(dedicated_driver)
    ->Name("dedicated/driver")
    ->Arg(1)
    ->Arg(8)
    ->Arg(32)
    ->Arg(128)
    ->UseManualTime();
BENCHMARK(dedicated_emulated)->Name("dedicated/emulated")->Arg(256)->Arg(4096)->UseManualTime();

}  // namespace
}  // namespace rio::bench
