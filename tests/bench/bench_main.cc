// Names: RING/driver is the cost of the driver alone, on a card that is only memory. RING/emulated
// includes the emulated card, so it is no figure of a real card.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
