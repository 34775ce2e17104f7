// pci-sleeper: interrupts of a card that EAL has probed, vector by vector.
// usage: pci-sleeper DEVICE EAL-OPTIONS
#include <poll.h>
#include <rte_eal.h>
#include <rte_rawdev.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/raw/raw_rio.hpp"
#include "tests/qemu/guest/tell.hpp"

namespace rio::guest {
namespace {

constexpr int kSleepMs = 30'000;  // nothing but an interrupt ends it sooner

/// A message to itself: sent, slept for, received.
int pass(pmd::QueuePair& pair, const pmd::DmaMemory& memory, int fd) {
  const pmd::RxBuffer buffer{memory.iova, 0};
  pmd::TxMessage out{};
  out.iova = memory.iova + 4096;
  out.dest_id = pair.dest_id();
  out.length_bytes = 64;
  if (pair.shared().post(&buffer, 1) != 1) {
    return fail("a buffer is not taken");
  }
  pair.shared().arm();
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&wait, 1, 20) != 0) {
    return fail("an interrupt before anything was sent");
  }
  if (pair.tx().burst(&out, 1) != 1 || poll(&wait, 1, kSleepMs) != 1) {
    return fail("no interrupt");
  }
  uint64_t raised = 0;
  pmd::RxMessage in{};
  if (read(fd, &raised, sizeof(raised)) != sizeof(raised) || raised != 1 ||
      pair.shared().burst(&in, 1) != 1 || in.status != pmd::Status::kOk) {
    return fail("woken %llu times, and no message is there",
                static_cast<unsigned long long>(raised));
  }
  pmd::TxDone done{};
  if (!eventually([&] { return pair.tx().reap(&done, 1) == 1; })) {
    return fail("the message was not completed");
  }
  fact("interrupts", raised);
  return 0;
}

int with_vector(pmd::Card& card, const pmd::DmaMemory& memory, uint32_t vector) {
  const int fd = card.bus().irq_fd(vector);
  if (fd < 0) {
    return fail("vector %u: no descriptor (%d)", vector, fd);
  }
  pmd::QueuePairConfig config;
  config.irq_vectors[static_cast<size_t>(regs::Ring::kShared)] = static_cast<int>(vector);
  std::unique_ptr<pmd::QueuePair> pair;
  if (card.open_queue_pair(0, config, &pair) != 0) {
    return fail("vector %u: the queue pair cannot be opened", vector);
  }
  for (int round = 0; round < 3; ++round) {
    if (pass(*pair, memory, fd) != 0) {
      return fail("vector %u, round %d", vector, round);
    }
  }
  return pair->stop();
}

int run(const char* device) {
  const uint16_t dev = rte_rawdev_get_dev_id(device);
  pmd::Card* const card = dev < RTE_RAWDEV_MAX_DEVS ? pmd::raw_card(dev) : nullptr;
  if (card == nullptr) {
    return fail("EAL has no card %s", device);
  }
  pmd::DmaMemory memory;
  if (card->bus().dma_alloc(2 * 4096, 4096, &memory) != 0) {
    return 1;
  }
  const uint32_t last = card->caps().vectors - 1;
  for (const uint32_t vector : {0u, 1u, last}) {
    if (with_vector(*card, memory, vector) != 0) {
      return 1;
    }
  }
  if (const int fd = card->bus().irq_fd(last + 1); fd != -ENOTSUP) {
    return fail("a vector that the card has not: %d", fd);
  }
  card->bus().dma_free(memory);
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
