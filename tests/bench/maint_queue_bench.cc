#include "pmd/dev/maint_queue.hpp"

#include <benchmark/benchmark.h>

#include "tests/bench/emulated_pair.hpp"

namespace rio::bench {
namespace {

constexpr uint32_t kTimeoutMs = 1000;

/// One word of the card's own configuration space: latency of the whole call.
void maint_local(benchmark::State& state) {
  EmulatedPair cards;
  uint32_t word = 0;
  for (auto _ : state) {
    if (cards.port(0).pair->maint().read_local(0, {&word, 1}, kTimeoutMs) != 0) {
      state.SkipWithError("read_local");
      break;
    }
    benchmark::DoNotOptimize(word);
  }
}

/// One word over the wire, of a card that is wired to itself, so that one thread steps both ends.
void maint_remote(benchmark::State& state) {
  std::unique_ptr<pmd::EmuBus> bus;
  std::unique_ptr<pmd::Card> card;
  std::unique_ptr<pmd::QueuePair> pair;
  pmd::CardConfig config;
  config.dest_ids = {1};
  if (pmd::EmuBus::create({}, nullptr, &bus) != 0 || pmd::Card::open(*bus, config, &card) != 0 ||
      card->open_queue_pair(0, {}, &pair) != 0) {
    give_up("emulated card", 0);
  }
  uint32_t word = 0;
  for (auto _ : state) {
    if (pair->maint().read(1, 255, 0, {&word, 1}, kTimeoutMs) != 0) {
      state.SkipWithError("read");
      break;
    }
    benchmark::DoNotOptimize(word);
  }
}

BENCHMARK(maint_local)->Name("maint_read_local/emulated");
BENCHMARK(maint_remote)->Name("maint_read/emulated");

}  // namespace
}  // namespace rio::bench
