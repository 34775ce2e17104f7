// Names: RING/driver is the driver's cost alone, on a card that is nothing but memory;
// RING/emulated is the emulated card with it, and no figure of a card.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
