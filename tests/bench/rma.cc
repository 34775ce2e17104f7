// Writes or reads the memory of a peer through libfabric, one operation after the other, and prints
// the time of one; callgrind can count it, too:
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=rio_bench_measured
//     rma write|read BYTES COUNT
// FI_RIO_RMA_BORDER chooses between the cards' DMA queues and messages. One thread runs both sides,
// on a fabric of shared memory unless FI_RIO_CARD names another one: the figure includes the work
// of both sides and of both emulated cards. Prints one JSON object.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/bench/ofi_sides.hpp"

namespace {

using rio::bench::check;

constexpr uint64_t kKey = 7;
constexpr uint32_t kWarm = 64;
constexpr uint64_t kTurnsMax = 100'000'000;

struct Run {
  rio::bench::OfiSides sides{FI_RMA};
  bool writes = false;
  std::vector<uint8_t> bytes;
};

bool once(Run& run) {
  uint8_t* const at = run.bytes.data();
  const size_t size = run.bytes.size();
  const rio::bench::OfiSide& user = run.sides.one;
  const fi_addr_t to = run.sides.peer_of_one;
  check("begin", run.writes ? fi_write(user.ep, at, size, nullptr, to, 0, kKey, nullptr)
                            : fi_read(user.ep, at, size, nullptr, to, 0, kKey, nullptr));
  fi_cq_entry entry{};
  for (uint64_t turn = 0; turn < kTurnsMax; ++turn) {
    if (rio::bench::poll(user)) {
      return true;
    }
    static_cast<void>(fi_cq_read(run.sides.other.cq, &entry, 0));
  }
  return false;
}

}  // namespace

extern "C" [[gnu::noinline]] bool rio_bench_measured(void* run, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!once(*static_cast<Run*>(run))) {
      return false;
    }
  }
  return true;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "error: wants write|read BYTES COUNT, such as: rma write 8 1000\n");
    return 2;
  }
  const auto count = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  Run run;
  run.writes = std::strcmp(argv[1], "write") == 0;
  run.bytes.resize(std::strtoul(argv[2], nullptr, 10));
  std::vector<uint8_t> memory(run.bytes.size());
  fid_mr* mr = nullptr;
  check("fi_mr_reg", fi_mr_reg(run.sides.other.domain, memory.data(), memory.size(),
                               FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &mr, nullptr));
  for (uint32_t i = 0; i < kWarm; ++i) {
    check("warm", once(run) ? 0 : -FI_EIO);
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool ok = rio_bench_measured(&run, count);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::printf("{\"ok\": %s, \"bytes\": %zu, \"ns\": %.1f}\n", ok ? "true" : "false",
              run.bytes.size(), took.count() / count);
  check("fi_close", fi_close(&mr->fid));
  return ok ? 0 : 1;
}
