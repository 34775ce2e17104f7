#include "pmd/dev/tx_queue.hpp"

#include "tests/bench/driver_rounds.hpp"

namespace rio::bench {
namespace {

std::vector<pmd::TxMessage> make_messages(uint64_t iova, const void* data, bool in_line) {
  std::vector<pmd::TxMessage> messages(kRound);
  for (uint32_t i = 0; i < kRound; ++i) {
    messages[i] = {.iova = iova,
                   .cookie = i,
                   .dest_id = 2,
                   .length_bytes = 64,
                   .mbox = static_cast<uint8_t>(i % kMailboxes),
                   .flags = 0};
    if (in_line) {
      messages[i].data = data;
      messages[i].length_bytes = 8;
      messages[i].flags = pmd::TxFlags::kInline;
    }
  }
  return messages;
}

/// Posts and reaps a ring full of messages, in bursts of range(0).
void driver(benchmark::State& state, bool in_line) {
  const uint64_t data = 1;
  const std::vector<pmd::TxMessage> messages = make_messages(4096, &data, in_line);
  std::vector<pmd::TxDone> done(kRound);
  driver_rounds<pmd::TxQueue, regs::TxCpl>(
      state, regs::Ring::kTx,
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.burst(&messages[i], n); },
      [](regs::TxCpl* cpl, uint32_t i) { cpl->index = i; },
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.reap(&done[i], n); });
}

void tx_driver(benchmark::State& state) {
  driver(state, false);
}
void tx_inline_driver(benchmark::State& state) {
  driver(state, true);
}

/// Posts, lets the card work, and reaps; receiving is not timed. range(0): bytes; range(1): burst.
void tx_emulated(benchmark::State& state) {
  EmulatedPair cards;
  Port& from = cards.port(0);
  const auto size_bytes = static_cast<uint32_t>(state.range(0));
  const auto burst = static_cast<uint16_t>(state.range(1));
  const uint64_t iova = from.pool->memory().iova;
  std::vector<pmd::TxMessage> messages(burst);
  std::vector<pmd::TxDone> done(burst);
  constexpr uint32_t kMessages = 128;
  Timer timer(state);
  for (auto _ : state) {
    for (uint32_t i = 0; i < kMessages; i += burst) {
      for (pmd::TxMessage& message : messages) {
        message = from.message(iova, i, size_bytes);
        message.mbox = size_bytes > regs::kSegmentBytesMax ? message.mbox % 4 : message.mbox;
      }
      timer.start();
      uint32_t posted = from.tx().burst(messages.data(), burst);
      uint32_t reaped = from.tx().reap(done.data(), burst);
      timer.stop();
      while (reaped < burst) {  // long messages wait for letters: both cards must work
        cards.sink(1);
        timer.start();
        posted += from.tx().burst(&messages[posted], static_cast<uint16_t>(burst - posted));
        reaped += from.tx().reap(done.data(), static_cast<uint16_t>(burst - reaped));
        timer.stop();
      }
      cards.sink(1);
    }
    while (cards.sink(1) != 0) {
    }
    timer.done(kMessages);
  }
  state.SetBytesProcessed(state.items_processed() * size_bytes);
}

BENCHMARK(tx_driver)->Name("tx/driver")->Arg(1)->Arg(8)->Arg(32)->Arg(128)->UseManualTime();
BENCHMARK(tx_inline_driver)->Name("tx_inline/driver")->Arg(1)->Arg(32)->UseManualTime();
BENCHMARK(tx_emulated)
    ->Name("tx/emulated")
    ->Args({8, 32})
    ->Args({64, 1})
    ->Args({64, 32})
    ->Args({256, 32})
    ->Args({4096, 32})
    ->UseManualTime();

}  // namespace
}  // namespace rio::bench
