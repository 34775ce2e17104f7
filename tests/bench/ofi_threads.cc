// Counts the runs that end in time. In a run, several threads of each of two processes repeatedly
// make endpoints with counters, do atomic operations through them and destroy them.
//   ofi_threads RUNS [THREADS [ROUNDS [BUSY]]]
// In a round a thread works on the memory of the peer's lasting endpoint, then on that of the
// endpoint that the peer's thread of the same index has made in this round. BUSY processes load the
// CPUs meanwhile. A run that takes longer than a minute, or whose memory ends with a wrong sum, is
// not counted. Each run has a fabric of shared memory of its own. Prints one JSON object.
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr uint32_t kThreadsMax = 14;  // with the lasting endpoint, below any domain's limit
constexpr uint32_t kUpdates = 8;      // for each round and target; as many fetches
constexpr uint64_t kKey = 1;
constexpr std::chrono::seconds kRunMax{60};

void check(const char* what, ssize_t rc) {
  if (rc != 0) {
    std::fprintf(stderr, "error: %s: %s\n", what, fi_strerror(static_cast<int>(-rc)));
    std::_Exit(1);
  }
}

using Name = std::array<uint8_t, 64>;

/// State that a thread publishes to the peer's thread of the same index.
struct Place {
  Name name;
  std::atomic<uint32_t> made;  ///< number of rounds whose endpoint exists
  std::atomic<uint32_t> done;  ///< number of rounds whose operations are done
};

struct Process {
  Name name;
  std::atomic<uint32_t> ready;
  std::atomic<uint32_t> done;
  std::array<Place, kThreadsMax> places;
};

/// Shared by both processes of a run.
struct Shared {
  std::array<Process, 2> processes;
};

struct Config {
  uint32_t runs = 0;
  uint32_t threads = 8;
  uint32_t rounds = 100;
  uint32_t busy = 0;
};

/// An endpoint whose operations are counted.
struct Counted {
  fid_cntr* writes = nullptr;
  fid_cntr* reads = nullptr;
  fid_ep* ep = nullptr;
};

struct Side {
  fi_info* info = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  Counted lasting;
  fid_mr* mr = nullptr;
  std::vector<uint64_t> memory;  ///< one for each thread of the peer
  fi_addr_t peer = FI_ADDR_NOTAVAIL;
  Process* own = nullptr;
  Process* other = nullptr;
};

fid_cntr* open_counter(fid_domain* domain) {
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* out = nullptr;
  check("fi_cntr_open", fi_cntr_open(domain, &attr, &out, nullptr));
  return out;
}

Counted open_endpoint(const Side& side) {
  Counted out;
  out.writes = open_counter(side.domain);
  out.reads = open_counter(side.domain);
  check("fi_endpoint", fi_endpoint(side.domain, side.info, &out.ep, nullptr));
  check("fi_ep_bind", fi_ep_bind(out.ep, &side.av->fid, 0));
  check("fi_ep_bind", fi_ep_bind(out.ep, &out.writes->fid, FI_WRITE));
  check("fi_ep_bind", fi_ep_bind(out.ep, &out.reads->fid, FI_READ));
  check("fi_enable", fi_enable(out.ep));
  return out;
}

void close_endpoint(const Counted& counted) {
  check("fi_close", fi_close(&counted.ep->fid));
  check("fi_close", fi_close(&counted.writes->fid));
  check("fi_close", fi_close(&counted.reads->fid));
}

Name name_of(fid_ep* ep) {
  Name name{};
  size_t bytes = name.size();
  check("fi_getname", fi_getname(&ep->fid, name.data(), &bytes));
  return name;
}

fi_addr_t insert(const Side& side, const Name& name) {
  fi_addr_t out = FI_ADDR_NOTAVAIL;
  check("fi_av_insert", fi_av_insert(side.av, name.data(), 1, &out, 0, nullptr) - 1);
  return out;
}

/// Waits, and makes progress meanwhile, since the peer may depend on it.
void await(const std::atomic<uint32_t>& value, uint32_t least, fid_cntr* progress) {
  while (value.load(std::memory_order_acquire) < least) {
    static_cast<void>(fi_cntr_read(progress));
    sched_yield();
  }
}

Side open_side(Process& own, Process& other, const Config& config) {
  Side side;
  side.own = &own;
  side.other = &other;
  fi_info* const hints = fi_allocinfo();
  hints->caps = FI_ATOMIC | FI_RMA;
  hints->fabric_attr->prov_name = strdup("rio");
  hints->domain_attr->threading = FI_THREAD_SAFE;
  check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &side.info));
  fi_freeinfo(hints);
  fid_fabric* fabric = nullptr;
  check("fi_fabric", fi_fabric(side.info->fabric_attr, &fabric, nullptr));
  check("fi_domain", fi_domain(fabric, side.info, &side.domain, nullptr));
  fi_av_attr av{};
  check("fi_av_open", fi_av_open(side.domain, &av, &side.av, nullptr));
  side.lasting = open_endpoint(side);
  side.memory.resize(config.threads);
  check("fi_mr_reg", fi_mr_reg(side.domain, side.memory.data(), config.threads * sizeof(uint64_t),
                               FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &side.mr, nullptr));
  own.name = name_of(side.lasting.ep);
  own.ready.store(1, std::memory_order_release);
  await(other.ready, 1, side.lasting.writes);
  side.peer = insert(side, other.name);
  return side;
}

void work_on(const Counted& counted, fi_addr_t peer, uint32_t thread, uint64_t done) {
  const uint64_t at = thread * sizeof(uint64_t);
  uint64_t one = 1;
  uint64_t old[kUpdates] = {};
  for (uint64_t& each : old) {
    check("fi_atomic",
          fi_atomic(counted.ep, &one, 1, nullptr, peer, at, kKey, FI_UINT64, FI_SUM, nullptr));
    check("fi_fetch_atomic", fi_fetch_atomic(counted.ep, &one, 1, nullptr, &each, nullptr, peer, at,
                                             kKey, FI_UINT64, FI_SUM, nullptr));
  }
  check("fi_cntr_wait", fi_cntr_wait(counted.writes, done + kUpdates, -1));
  check("fi_cntr_wait", fi_cntr_wait(counted.reads, done + kUpdates, -1));
}

void run_thread(const Side& side, uint32_t thread, const Config& config) {
  Place& own = side.own->places[thread];
  const Place& other = side.other->places[thread];
  for (uint32_t round = 1; round <= config.rounds; ++round) {
    const Counted counted = open_endpoint(side);
    work_on(counted, side.peer, thread, 0);
    own.name = name_of(counted.ep);
    own.made.store(round, std::memory_order_release);
    await(other.made, round, counted.writes);
    fi_addr_t peer = insert(side, other.name);
    work_on(counted, peer, thread, kUpdates);
    own.done.store(round, std::memory_order_release);
    await(other.done, round, counted.writes);
    check("fi_av_remove", fi_av_remove(side.av, &peer, 1, 0));
    close_endpoint(counted);
  }
}

/// @return exit code of the process.
int run_process(Process& own, Process& other, const Config& config) {
  const Side side = open_side(own, other, config);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < config.threads; ++i) {
    threads.emplace_back([&, i] { run_thread(side, i, config); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  own.done.store(1, std::memory_order_release);
  await(other.done, 1, side.lasting.writes);
  const uint64_t sum = uint64_t{config.rounds} * 4 * kUpdates;
  for (const uint64_t value : side.memory) {
    if (value != sum) {
      std::fprintf(stderr, "error: %llu operations on a value, not %llu\n",
                   static_cast<unsigned long long>(value), static_cast<unsigned long long>(sum));
      return 1;
    }
  }
  check("fi_close", fi_close(&side.mr->fid));
  close_endpoint(side.lasting);
  check("fi_close", fi_close(&side.av->fid));
  check("fi_close", fi_close(&side.domain->fid));
  return 0;
}

template <class Body>
[[nodiscard]] pid_t start(Body&& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    static_cast<void>(prctl(PR_SET_PDEATHSIG, SIGKILL));
    std::_Exit(body());
  }
  check("fork", pid < 0 ? -FI_EAGAIN : 0);
  return pid;
}

/// @return whether the process ended in time and with the right sums.
[[nodiscard]] bool await_end(pid_t pid, std::chrono::steady_clock::time_point end) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

[[nodiscard]] bool run_once(uint32_t run, const Config& config) {
  void* const at =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check("mmap", at == MAP_FAILED ? -FI_ENOMEM : 0);
  auto* const shared = new (at) Shared();
  auto& both = shared->processes;
  if (std::getenv("FI_RIO_CARD") == nullptr) {
    const std::string fabric = "threads-" + std::to_string(getpid()) + "-" + std::to_string(run);
    setenv("FI_RIO_FABRIC", fabric.c_str(), 1);
  }
  const pid_t first = start([&] { return run_process(both[0], both[1], config); });
  const pid_t second = start([&] { return run_process(both[1], both[0], config); });
  const auto end = std::chrono::steady_clock::now() + kRunMax;
  const bool first_ended = await_end(first, end);
  const bool ended = await_end(second, end) && first_ended;
  munmap(at, sizeof(Shared));
  return ended;
}

[[nodiscard]] int spin() {
  std::atomic<uint64_t> turns{0};
  for (;;) {
    turns.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Config config;
  uint32_t* const wanted[] = {&config.runs, &config.threads, &config.rounds, &config.busy};
  for (int i = 1; i < argc && i <= 4; ++i) {
    *wanted[i - 1] = static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10));
  }
  if (argc < 2 || argc > 5 || config.runs == 0 || config.threads == 0 ||
      config.threads > kThreadsMax) {
    std::fprintf(stderr,
                 "error: wants RUNS [THREADS [ROUNDS [BUSY]]], with up to %u threads, such as: "
                 "ofi_threads 20 8 100 2\n",
                 kThreadsMax);
    return 2;
  }
  std::vector<pid_t> busy;
  for (uint32_t i = 0; i < config.busy; ++i) {
    busy.push_back(start(spin));
  }
  uint32_t ended = 0;
  std::chrono::duration<double> longest{0};
  for (uint32_t run = 0; run < config.runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    ended += run_once(run, config) ? 1 : 0;
    longest =
        std::max<std::chrono::duration<double>>(longest, std::chrono::steady_clock::now() - begin);
  }
  for (const pid_t pid : busy) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  std::printf("{\"runs\": %u, \"ended\": %u, \"longest_s\": %.2f}\n", config.runs, ended,
              longest.count());
  return ended == config.runs ? 0 : 1;
}
