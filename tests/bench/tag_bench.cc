// Matching time by the number of waiting entries: tag/CASE/WAITING is the time to add and match one
// entry.
#include <benchmark/benchmark.h>

#include <string>

#include "tests/bench/tag_traffic.hpp"

namespace {

void match(benchmark::State& state, const rio::bench::TagCase& kind) {
  rio::bench::TagTraffic traffic(kind, static_cast<uint64_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    traffic.step();
  }
  state.SetItemsProcessed(state.iterations());
}

}  // namespace

int main(int argc, char** argv) {
  for (const rio::bench::TagCase& kind : rio::bench::kTagCases) {
    benchmark::RegisterBenchmark((std::string("tag/") + kind.name).c_str(), match, kind)
        ->RangeMultiplier(10)
        ->Range(1, 100000);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
