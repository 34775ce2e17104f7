// Writes or reads the memory of a peer through libfabric, one operation after the other, and prints
// the time of one; callgrind can count it, too:
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=rio_bench_measured
//     rma write|read BYTES COUNT
// FI_RIO_RMA_BORDER chooses between the cards' DMA queues and messages. One thread runs both sides,
// on a fabric of shared memory unless FI_RIO_CARD names another one: the figure includes the work
// of both sides and of both emulated cards. Prints one JSON object.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kKey = 7;
constexpr uint32_t kWarm = 64;
constexpr uint64_t kTurnsMax = 100'000'000;

void check(const char* what, ssize_t rc) {
  if (rc != 0) {
    std::fprintf(stderr, "error: %s: %s\n", what, fi_strerror(static_cast<int>(-rc)));
    std::exit(1);
  }
}

struct Side {
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* ep = nullptr;
};

Side open_side(fid_fabric* fabric, fi_info* info) {
  Side side;
  check("fi_domain", fi_domain(fabric, info, &side.domain, nullptr));
  fi_av_attr av{};
  fi_cq_attr cq{};
  cq.format = FI_CQ_FORMAT_CONTEXT;
  check("fi_av_open", fi_av_open(side.domain, &av, &side.av, nullptr));
  check("fi_cq_open", fi_cq_open(side.domain, &cq, &side.cq, nullptr));
  check("fi_endpoint", fi_endpoint(side.domain, info, &side.ep, nullptr));
  check("fi_ep_bind", fi_ep_bind(side.ep, &side.av->fid, 0));
  check("fi_ep_bind", fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV));
  check("fi_enable", fi_enable(side.ep));
  return side;
}

struct Run {
  Side user;
  Side owner;
  bool writes = false;
  fi_addr_t to = 0;
  std::vector<uint8_t> bytes;
};

bool once(Run& run) {
  uint8_t* const at = run.bytes.data();
  const size_t size = run.bytes.size();
  check("begin", run.writes ? fi_write(run.user.ep, at, size, nullptr, run.to, 0, kKey, nullptr)
                            : fi_read(run.user.ep, at, size, nullptr, run.to, 0, kKey, nullptr));
  fi_cq_entry entry{};
  for (uint64_t turn = 0; turn < kTurnsMax; ++turn) {
    const ssize_t rc = fi_cq_read(run.user.cq, &entry, 1);
    if (rc == 1) {
      return true;
    }
    if (rc == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      static_cast<void>(fi_cq_readerr(run.user.cq, &error, 0));
      check("it", -error.err);
    }
    static_cast<void>(fi_cq_read(run.owner.cq, &entry, 0));
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
  if (std::getenv("FI_RIO_CARD") == nullptr) {
    setenv("FI_RIO_FABRIC", ("bench-rma-" + std::to_string(getpid())).c_str(), 1);
  }
  const auto count = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  Run run;
  run.writes = std::strcmp(argv[1], "write") == 0;
  run.bytes.resize(std::strtoul(argv[2], nullptr, 10));
  std::vector<uint8_t> memory(run.bytes.size());
  fi_info* const hints = fi_allocinfo();
  hints->caps = FI_RMA;
  hints->fabric_attr->prov_name = strdup("rio");
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  fi_info* info = nullptr;
  check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info));
  fid_fabric* fabric = nullptr;
  check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr));
  run.user = open_side(fabric, info);
  run.owner = open_side(fabric, info);
  std::array<uint8_t, 64> name{};
  size_t name_bytes = name.size();
  check("fi_getname", fi_getname(&run.owner.ep->fid, name.data(), &name_bytes));
  check("fi_av_insert", fi_av_insert(run.user.av, name.data(), 1, &run.to, 0, nullptr) - 1);
  fid_mr* mr = nullptr;
  check("fi_mr_reg", fi_mr_reg(run.owner.domain, memory.data(), memory.size(),
                               FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &mr, nullptr));
  for (uint32_t i = 0; i < kWarm; ++i) {
    check("warm", once(run) ? 0 : -FI_EIO);
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool ok = rio_bench_measured(&run, count);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::printf("{\"ok\": %s, \"bytes\": %zu, \"ns\": %.1f}\n", ok ? "true" : "false",
              run.bytes.size(), took.count() / count);
  return ok ? 0 : 1;
}
