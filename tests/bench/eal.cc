#include "tests/bench/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>

namespace rio::bench {

void expect(bool good, const char* what) {
  if (!good) [[unlikely]] {
    std::fprintf(stderr, "error: %s\n", what);
    std::exit(1);
  }
}

void start_eal(const std::vector<std::string>& more) {
  cpu_set_t set;
  CPU_ZERO(&set);
  expect(sched_getaffinity(0, sizeof(set), &set) == 0, "which CPUs this process may use");
  int cpu = 0;
  while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu, &set) == 0) {
    ++cpu;
  }
  std::vector<std::string> args = {"bench",
                                   "-l",
                                   std::to_string(cpu),
                                   "--no-huge",
                                   "--no-shconf",
                                   "-m",
                                   "256",
                                   "--no-pci",
                                   "--no-telemetry",
                                   "--iova-mode=va",
                                   "--log-level=lib.eal:warning"};
  args.insert(args.end(), more.begin(), more.end());
  std::vector<char*> argv;
  argv.reserve(args.size() + 1);
  for (std::string& arg : args) {
    argv.push_back(arg.data());
  }
  argv.push_back(nullptr);
  if (rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data()) < 0) {
    std::fprintf(stderr, "error: EAL does not start: %s\n", rte_strerror(rte_errno));
    std::exit(1);
  }
}

}  // namespace rio::bench
