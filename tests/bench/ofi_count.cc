// Carries tagged messages through libfabric, there and back, for callgrind:
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=rio_bench_measured
//     ofi_count BYTES COUNT
// One thread runs both sides, so the number of polls is the same in each run. Bytes are checked.
// Prints one JSON object.
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/bench/ofi_sides.hpp"

namespace {

using rio::bench::check;
using rio::bench::OfiSide;

constexpr uint64_t kTag = 7;
constexpr uint32_t kWarm = 32;
constexpr uint64_t kTurnsMax = 100'000'000;

struct Run {
  rio::bench::OfiSides sides{FI_TAGGED};
  std::vector<uint8_t> out;
  std::vector<uint8_t> in;
};

// Sends one message to a receive that waits for it. Returns whether both sides completed.
bool carry(const OfiSide& from, fi_addr_t to, const OfiSide& at, fi_addr_t sender, Run& run) {
  check("fi_trecv",
        fi_trecv(at.ep, run.in.data(), run.in.size(), nullptr, sender, kTag, 0, nullptr));
  check("fi_tsend", fi_tsend(from.ep, run.out.data(), run.out.size(), nullptr, to, kTag, nullptr));
  bool sent = false;
  bool received = false;
  for (uint64_t turn = 0; turn < kTurnsMax && !(sent && received); ++turn) {
    // Each side in each turn: one that has its completion may have to work for the other's.
    const bool came = rio::bench::poll(at);
    const bool went = rio::bench::poll(from);
    received = received || came;
    sent = sent || went;
  }
  return sent && received;
}

bool there_and_back(Run& run) {
  const rio::bench::OfiSides& sides = run.sides;
  return carry(sides.one, sides.peer_of_one, sides.other, sides.peer_of_other, run) &&
         carry(sides.other, sides.peer_of_other, sides.one, sides.peer_of_one, run);
}

}  // namespace

extern "C" [[gnu::noinline]] bool rio_bench_measured(void* run, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!there_and_back(*static_cast<Run*>(run))) {
      return false;
    }
  }
  return true;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "error: wants BYTES COUNT, such as: ofi_count 64 1000\n");
    return 2;
  }
  const auto count = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  Run run;
  run.out.resize(std::strtoul(argv[1], nullptr, 10));
  run.in.resize(run.out.size());
  for (size_t i = 0; i < run.out.size(); ++i) {
    run.out[i] = static_cast<uint8_t>(1 + i % 251);
  }
  for (uint32_t i = 0; i < kWarm; ++i) {
    check("warm-up", there_and_back(run) ? 0 : -FI_EIO);
  }
  run.in.assign(run.in.size(), 0);
  const bool ok = rio_bench_measured(&run, count) && run.in == run.out;
  std::printf("{\"ok\": %s, \"bytes\": %zu}\n", ok ? "true" : "false", run.out.size());
  return ok ? 0 : 1;
}
