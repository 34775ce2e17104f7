#include "pmd/dev/shared_rx_queue.hpp"

#include "tests/bench/driver_rounds.hpp"

namespace rio::bench {
namespace {

/// Posts a ring full of buffers and receives into them, in bursts of range(0).
void shared_driver(benchmark::State& state) {
  std::vector<pmd::RxBuffer> buffers(kRound, {.iova = 4096, .cookie = 4096});
  std::vector<pmd::RxMessage> messages(kRound);
  driver_rounds<pmd::SharedRxQueue, regs::SharedCpl>(
      state, regs::Ring::kShared,
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.post(&buffers[i], n); },
      [](regs::SharedCpl* cpl, uint32_t i) {
        cpl->index = i;
        cpl->length = 64;
        cpl->segments = 1;
        cpl->place = i % kMailboxes;
      },
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.burst(&messages[i], n); });
}

/// Receives messages of range(0) bytes that another card has sent, and gives the buffers back.
void shared_emulated(benchmark::State& state) {
  EmulatedPair cards;
  Port& from = cards.port(0);
  const auto size_bytes = static_cast<uint32_t>(state.range(0));
  const uint64_t iova = from.pool->memory().iova;
  constexpr uint32_t kMessages = 128;
  Timer timer(state);
  for (auto _ : state) {
    pmd::TxDone done[kBurst];
    for (uint32_t sent = 0; sent < kMessages; sent += kBurst) {
      pmd::TxMessage messages[kBurst];
      for (pmd::TxMessage& message : messages) {
        message = from.message(iova, 0, size_bytes);
      }
      if (from.tx().burst(messages, kBurst) != kBurst) {
        give_up("sending", 0);
      }
      from.tx().reap(done, kBurst);
    }
    uint32_t got = 0;
    timer.start();
    while (got < kMessages) {
      got += cards.sink(1);
    }
    timer.stop();
    while (from.tx().outstanding() != 0) {
      from.tx().reap(done, kBurst);
      cards.step();
    }
    timer.done(kMessages);
  }
  state.SetBytesProcessed(state.items_processed() * size_bytes);
}

BENCHMARK(shared_driver)->Name("shared/driver")->Arg(1)->Arg(8)->Arg(32)->Arg(128)->UseManualTime();
BENCHMARK(shared_emulated)->Name("shared/emulated")->Arg(8)->Arg(64)->Arg(256)->UseManualTime();

}  // namespace
}  // namespace rio::bench
