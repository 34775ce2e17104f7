#include "pmd/dev/dma_queue.hpp"

#include "tests/bench/driver_rounds.hpp"

namespace rio::bench {
namespace {

/// Posts and reaps a ring full of requests, in bursts of range(0).
void dma_driver(benchmark::State& state) {
  const std::vector<pmd::DmaRequest> requests(kRound, {.rio_addr = 0,
                                                       .iova = 4096,
                                                       .cookie = 1,
                                                       .dest_id = 2,
                                                       .length_bytes = 64,
                                                       .op = regs::DmaOp::kNwriteR,
                                                       .prio = 0});
  std::vector<pmd::EntryDone> done(kRound);
  driver_rounds<pmd::DmaQueue, regs::EntryCpl>(
      state, regs::Ring::kDma,
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.post(&requests[i], n); },
      [](regs::EntryCpl* cpl, uint32_t i) {
        cpl->index = i;
        cpl->bytes = 64;
      },
      [&](auto& queue, uint32_t i, uint16_t n) { return queue.reap(&done[i], n); });
}

/// A burst of requests of range(0) bytes and their answers; everything is timed.
void dma_emulated(benchmark::State& state, regs::DmaOp op) {
  constexpr uint32_t kBytes = 65536;
  EmulatedPair cards;
  Port& from = cards.port(0);
  Port& to = cards.port(1);
  const auto size_bytes = static_cast<uint32_t>(state.range(0));
  pmd::DmaMemory memory;
  if (const int rc = to.bus->dma_alloc(2 * kBytes, kBytes, &memory); rc != 0) {
    give_up("memory", rc);
  }
  uint32_t window = 0;
  if (const int rc =
          to.pair->windows().open({.rio_addr = 0,
                                   .size_bytes = kBytes,
                                   .iova = memory.iova,
                                   .rights = pmd::WindowRights::kRead | pmd::WindowRights::kWrite},
                                  &window);
      rc != 0) {
    give_up("opening a window", rc);
  }
  const std::vector<pmd::DmaRequest> requests(kBurst, {.rio_addr = 0,
                                                       .iova = memory.iova + kBytes,
                                                       .cookie = 1,
                                                       .dest_id = from.peer_id,
                                                       .length_bytes = size_bytes,
                                                       .op = op,
                                                       .prio = 0});
  Timer timer(state);
  for (auto _ : state) {
    pmd::EntryDone done[kBurst];
    timer.start();
    uint32_t left = from.pair->dma().post(requests.data(), kBurst);
    while (left > 0) {
      to.step();
      left -= from.pair->dma().reap(done, kBurst);
    }
    timer.stop();
    timer.done(kBurst);
  }
  state.SetBytesProcessed(state.items_processed() * size_bytes);
}

void dma_nwrite_r(benchmark::State& state) {
  dma_emulated(state, regs::DmaOp::kNwriteR);
}
void dma_nread(benchmark::State& state) {
  dma_emulated(state, regs::DmaOp::kNread);
}

BENCHMARK(dma_driver)->Name("dma/driver")->Arg(1)->Arg(32)->UseManualTime();
BENCHMARK(dma_nwrite_r)->Name("dma_nwrite_r/emulated")->Arg(64)->Arg(4096)->UseManualTime();
BENCHMARK(dma_nread)->Name("dma_nread/emulated")->Arg(64)->Arg(4096)->UseManualTime();

}  // namespace
}  // namespace rio::bench
