#include "pmd/dev/doorbell_queue.hpp"

#include "tests/bench/emulated_pair.hpp"
#include "tests/bench/plain_card.hpp"
#include "tests/bench/timer.hpp"

namespace rio::bench {
namespace {

constexpr uint32_t kLog2 = 9;
constexpr uint32_t kRound = 1u << kLog2;

/// Receive a ring full of doorbells, in bursts of range(0).
void doorbell_driver(benchmark::State& state) {
  PlainCard card;
  std::unique_ptr<pmd::DoorbellQueue> queue;
  const auto ring = regs::Ring::kDoorbell;
  if (const int rc = pmd::DoorbellQueue::create(
          card, test::full_caps(), {.ring = static_cast<uint32_t>(ring), .log2 = kLog2}, &queue);
      rc != 0) {
    give_up("DoorbellQueue::create", rc);
  }
  card.ready();
  const auto burst = static_cast<uint16_t>(state.range(0));
  std::vector<pmd::DoorbellEvent> events(kRound);
  Timer timer(state);
  uint32_t index = 0;
  for (auto _ : state) {
    card.complete<regs::DoorbellCpl>(ring, index, kRound,
                                     [](regs::DoorbellCpl* cpl, uint32_t) { cpl->source = 1; });
    index += kRound;
    uint32_t n = 0;
    timer.start();
    for (uint32_t i = 0; i < kRound; i += burst) {
      n += queue->burst(&events[i], burst);
    }
    timer.stop();
    if (n != kRound) {
      state.SkipWithError("not all were received");
      break;
    }
    timer.done(kRound);
  }
  card.stopping();
}

/// A burst of doorbells from card to card and back their answers, all of it.
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
