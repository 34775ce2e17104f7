// Repeats one kind of traffic, so that callgrind can count it:
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=rio_bench_measured
//     pmd_count CASE ROUNDS [BYTES [BURST]]
// pmd_count bar:CASE … watches the BAR instead; see count_case.hpp. Prints one JSON object.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/bench/count_case.hpp"

namespace {
constexpr uint64_t kWarmUp = 200;  // rounds; the rings wrap several times
constexpr std::string_view kBar = "bar:";
}  // namespace

/// The code that callgrind counts. Not inlined, and with a name that is easy to type.
extern "C" [[gnu::noinline]] void rio_bench_measured(rio::bench::CountCase* traffic,
                                                     uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    traffic->round();
  }
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    std::fprintf(stderr, "usage: %s [bar:]CASE ROUNDS [BYTES [BURST]]\n", argv[0]);
    return 1;
  }
  std::string_view name = argv[1];
  const bool watch = name.starts_with(kBar);
  name.remove_prefix(watch ? kBar.size() : 0);
  const uint64_t rounds = std::strtoull(argv[2], nullptr, 0);
  const auto size_bytes = static_cast<uint32_t>(argc > 3 ? std::strtoul(argv[3], nullptr, 0) : 64);
  const auto burst =
      static_cast<uint16_t>(argc > 4 ? std::strtoul(argv[4], nullptr, 0) : rio::bench::kBurst);
  const auto traffic = rio::bench::make_case(name, watch, size_bytes, burst);
  if (traffic == nullptr) {
    std::fprintf(stderr, "error: no case '%s'\n", argv[1]);
    return 1;
  }
  for (uint64_t i = 0; i < kWarmUp; ++i) {
    traffic->round();
  }
  const uint64_t before = traffic->messages();
  const uint64_t reads_before = traffic->bar_reads();
  const uint64_t writes_before = traffic->bar_writes();
  rio_bench_measured(traffic.get(), rounds);
  std::printf(
      "{\"case\": \"%s\", \"rounds\": %llu, \"messages\": %llu, \"bar_reads_max\": %llu, "
      "\"bar_writes_max\": %llu, \"bar_reads\": %llu, \"bar_writes\": %llu}\n",
      argv[1], static_cast<unsigned long long>(rounds),
      static_cast<unsigned long long>(traffic->messages() - before),
      static_cast<unsigned long long>(traffic->bar_reads_max()),
      static_cast<unsigned long long>(traffic->bar_writes_max()),
      static_cast<unsigned long long>(traffic->bar_reads() - reads_before),
      static_cast<unsigned long long>(traffic->bar_writes() - writes_before));
  return 0;
}
