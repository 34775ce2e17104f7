// Repeats one kind of matching, so that callgrind can count it:
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=rio_bench_tag_CALL
//     tag_count CASE WAITING STEPS
// CALL is post, arrive, keep or cancel; cases are in tag_traffic.hpp. The initial filling counts,
// too, so take the difference of two numbers of steps. Prints one JSON object.
#include <cstdio>
#include <cstdlib>

#include "tests/bench/tag_traffic.hpp"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s CASE WAITING STEPS\n", argv[0]);
    return 1;
  }
  const rio::bench::TagCase* kind = nullptr;
  for (const rio::bench::TagCase& each : rio::bench::kTagCases) {
    kind = std::string_view(argv[1]) == each.name ? &each : kind;
  }
  const uint64_t waiting = std::strtoull(argv[2], nullptr, 0);
  const uint64_t steps = std::strtoull(argv[3], nullptr, 0);
  if (kind == nullptr || waiting == 0) {
    std::fprintf(stderr, "error: no case '%s' with %s waiting\n", argv[1], argv[2]);
    return 1;
  }
  rio::bench::TagTraffic traffic(*kind, waiting);
  for (uint64_t i = 0; i < steps; ++i) {
    traffic.step();
  }
  std::printf("{\"case\": \"%s\", \"waiting\": %llu, \"steps\": %llu}\n", argv[1],
              static_cast<unsigned long long>(waiting), static_cast<unsigned long long>(steps));
  return 0;
}
