// Steps with maintenance and interrupts.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "pmd/dev/names.hpp"
#include "pmd/selftest/bench.hpp"

namespace rio::selftest {
namespace {

constexpr uint32_t kMaintTimeoutMs = 5000;
constexpr uint16_t kDoorbellInfo = 8;

/// Wait for an interrupt. @return what is wrong, or empty.
std::string wait_irq(Bench& bench, int fd, const std::string& what) {
  constexpr int kSliceMs = 50;
  for (uint32_t waited = 0; waited < bench.config().patience_ms; waited += kSliceMs) {
    pollfd poll_fd{fd, POLLIN, 0};
    uint64_t raised = 0;
    if (poll(&poll_fd, 1, kSliceMs) == 1 && read(fd, &raised, sizeof(raised)) > 0) {
      return "";
    }
    if (bench.card().gone()) {
      bench.gone = true;
      return "the card is gone (its magic reads all ones)";
    }
  }
  return what + ": no interrupt within " + std::to_string(bench.config().patience_ms) + " ms";
}

/// The transmit and the doorbell ring of a doorbell, both by one vector, one after the other.
std::string run_vector(Bench& bench, uint32_t vector, uint64_t* done) {
  const int fd = bench.bus().irq_fd(vector);
  if (fd < 0) {
    return "vector " + std::to_string(vector) + ": " + std::strerror(-fd);
  }
  for (const regs::Ring ring : {regs::Ring::kTx, regs::Ring::kDoorbell}) {
    const std::string what = "vector " + std::to_string(vector) + ", ring " +
                             pmd::ring_name(static_cast<uint32_t>(ring));
    if (std::string wrong = bench.reset(); !wrong.empty()) {
      return wrong;
    }
    uint64_t old = 0;
    (void)!read(fd, &old, sizeof(old));  // what came before is not meant
    pmd::QueuePairConfig queues;
    queues.irq_vectors[static_cast<uint32_t>(ring)] = static_cast<int>(vector);
    const auto work = [&](pmd::QueuePair& pair, Exchange& exchange) {
      ring == regs::Ring::kTx ? pair.tx().arm() : pair.doorbells().arm();
      std::string wrong = exchange.doorbell(kDoorbellInfo);
      return wrong.empty() ? wait_irq(bench, fd, what) : wrong;
    };
    if (std::string wrong = bench.loop(work, queues); !wrong.empty()) {
      return wrong;
    }
    bench.tell("interrupts", ++*done, 0);
  }
  return "";
}

}  // namespace

Verdict test_maintenance(Bench& bench) {
  if (!bench.card().caps().maint) {
    return skip("the card has no maintenance queue");
  }
  uint64_t done = 0;
  const auto work = [&](pmd::QueuePair& pair, Exchange&) -> std::string {
    constexpr uint32_t kIdentityCar = 0x00;
    constexpr uint8_t kAnyHops = 0xFF;
    uint32_t local[8] = {};
    int rc = pair.maint().read_local(kIdentityCar, local, kMaintTimeoutMs);
    if (rc != 0) {
      bench.gone = rc == -ENODEV;
      return std::string("CARs of the card: ") + std::strerror(-rc);
    }
    if (local[0] == 0 || local[0] == regs::kAllOnes) {
      return "the device identity CAR holds nothing";
    }
    done = 1;
    if (!bench.no_loop.empty()) {
      return "";
    }
    uint32_t remote[8] = {};
    rc = pair.maint().read(bench.config().dest_id, kAnyHops, kIdentityCar, remote, kMaintTimeoutMs);
    if (rc != 0) {
      bench.gone = rc == -ENODEV;
      return std::string("CARs of the card over the link: ") + std::strerror(-rc);
    }
    ++done;
    return std::memcmp(local, remote, sizeof(local)) == 0
               ? ""
               : "the CARs read over the link are other ones than those of the card";
  };
  const std::string wrong = bench.loop(work, {}, bench.no_loop.empty());
  return wrong.empty() ? pass(done, "reads of 8 CARs") : fail(wrong);
}

Verdict test_interrupts(Bench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  const uint32_t vectors = bench.card().caps().vectors;
  if (vectors == 0) {
    return skip("the card has no interrupts");
  }
  if (bench.bus().poll_hook(0).fn != nullptr) {
    return skip("this card works only while it is polled; open it with stepping=thread");
  }
  if (bench.bus().irq_fd(0) == -ENOTSUP) {
    return skip("no interrupts on this bus; bind the card to vfio-pci");
  }
  uint64_t done = 0;
  for (uint32_t vector = 0; vector < (bench.config().quick ? 1 : vectors); ++vector) {
    if (std::string wrong = run_vector(bench, vector, &done); !wrong.empty()) {
      return fail(wrong);
    }
  }
  return pass(done, "interrupts");
}

}  // namespace rio::selftest
