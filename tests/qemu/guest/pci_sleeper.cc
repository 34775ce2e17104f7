// pci-sleeper: interrupts of a card that EAL has probed, queue pair by queue pair.
// usage: pci-sleeper DEVICE EAL-OPTIONS
#include <rte_eal.h>
#include <rte_rawdev.h>

#include "tests/eal/raw_sleeper.hpp"
#include "tests/qemu/guest/tell.hpp"

namespace rio::guest {
namespace {

constexpr uint32_t kRounds = 3;

int run(const char* device) {
  const uint16_t dev = rte_rawdev_get_dev_id(device);
  if (dev >= RTE_RAWDEV_MAX_DEVS) {
    return fail("EAL has no card %s", device);
  }
  for (uint16_t qp = 0; qp < rte_rawdev_queue_count(dev); ++qp) {
    uint64_t interrupts = 0;
    const std::string why = test::sleep_and_receive(dev, qp, kRounds, &interrupts);
    fact("interrupts", interrupts);
    if (!why.empty()) {
      return fail("queue pair %u: %s", qp, why.c_str());
    }
  }
  return 0;
}

}  // namespace
}  // namespace rio::guest

int main(int argc, char** argv) {
  if (argc < 2) {
    return rio::guest::fail("usage: pci-sleeper DEVICE EAL-OPTIONS");
  }
  const char* const device = argv[1];
  argv[1] = argv[0];
  if (rte_eal_init(argc - 1, argv + 1) < 0) {
    return rio::guest::fail("no EAL");
  }
  const int code = rio::guest::run(device);
  rte_eal_cleanup();
  return code;
}
