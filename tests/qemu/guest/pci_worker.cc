// pci-worker: one of several DPDK processes on a card of the guest; see tests/eal/raw_worker.hpp.
// usage: pci-worker DEVICE QP EAL-OPTIONS
#include <rte_eal.h>

#include <cstdio>
#include <cstdlib>

#include "tests/eal/raw_worker.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::printf("usage: pci-worker DEVICE QP EAL-OPTIONS\n");
    return 2;
  }
  const std::string device = argv[1];
  const auto qp = static_cast<uint16_t>(std::strtoul(argv[2], nullptr, 10));
  argv[2] = argv[0];
  if (rte_eal_init(argc - 2, argv + 2) < 0) {
    std::printf("no EAL\n");
    return 1;
  }
  const int code = rio::test::run_worker(device, qp);
  rte_eal_cleanup();
  return code;
}
