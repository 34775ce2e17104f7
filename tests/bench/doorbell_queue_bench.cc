#include "pmd/dev/notice_queue.hpp"

#include "tests/bench/driver_rounds.hpp"

namespace rio::bench {
namespace {

/// Receives a ring full of doorbells, in bursts of range(0).
void doorbell_driver(benchmark::State& state) {
  std::vector<pmd::DoorbellEvent> events(kRound);
  driver_rounds<pmd::DoorbellQueue, regs::DoorbellCpl>(
      state, regs::Ring::kDoorbell, nullptr,
      [](regs::DoorbellCpl* cpl, uint32_t) { cpl->source = 1; },
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.burst(&events[i], n); });
}

/// A burst of doorbells from card to card, and their answers; everything is timed.
void doorbell_emulated(benchmark::State& state) {
  EmulatedPair cards;
  Port& from = cards.port(0);
  pmd::TxMessage messages[kBurst];
  for (pmd::TxMessage& message : messages) {
    message = from.message(0, 0, 0);
    message.info = 7;
    message.flags = pmd::TxFlags::kDoorbell;
  }
  Timer timer(state);
  for (auto _ : state) {
    pmd::TxDone done[kBurst];
    pmd::DoorbellEvent events[kBurst];
    timer.start();
    from.tx().burst(messages, kBurst);
    uint32_t got = 0;
    for (uint32_t reaped = 0; reaped < kBurst || got < kBurst;) {
      got += cards.port(1).pair->doorbells().burst(events, kBurst);
      reaped += from.tx().reap(done, kBurst);
    }
    timer.stop();
    timer.done(kBurst);
  }
}

BENCHMARK(doorbell_driver)->Name("doorbell/driver")->Arg(1)->Arg(32)->UseManualTime();
BENCHMARK(doorbell_emulated)->Name("doorbell/emulated")->UseManualTime();

}  // namespace
}  // namespace rio::bench
