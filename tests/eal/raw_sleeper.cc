#include "tests/eal/raw_sleeper.hpp"

#include <rte_malloc.h>
#include <rte_rawdev.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <memory>

#include "pmd/raw/rte_raw_rio.h"

namespace rio::test {
namespace {

constexpr int kSleepMs = 30'000;  // only an interrupt ends it sooner
constexpr int kQuietMs = 20;
constexpr size_t kBufferBytes = 4096;

struct Session {
  uint16_t dev;
  rte_raw_rio_context tx;
  rte_raw_rio_context shared;
  uint32_t dest_id;
  uint64_t out_iova;
  uint64_t in_iova;
  int poller;
};

template <class T>
int enqueue(const Session& s, rte_raw_rio_context context, T* what) {
  rte_rawdev_buf buffer{what};
  rte_rawdev_buf* one = &buffer;
  return rte_rawdev_enqueue_buffers(s.dev, &one, 1, &context);
}

template <class T>
int dequeue(const Session& s, rte_raw_rio_context context, T* what) {
  rte_rawdev_buf buffer{what};
  rte_rawdev_buf* one = &buffer;
  return rte_rawdev_dequeue_buffers(s.dev, &one, 1, &context);
}

/// Sleeps. @return how often the card has raised the interrupt; 0: it has not.
uint64_t sleep_for(const Session& s, int milliseconds) {
  epoll_event event{};
  uint64_t raised = 0;
  if (epoll_wait(s.poller, &event, 1, milliseconds) != 1 ||
      read(event.data.fd, &raised, sizeof(raised)) != sizeof(raised)) {
    return 0;
  }
  return raised;
}

int arm(const Session& s) {
  const std::string name = "qp" + std::to_string(s.shared.queue_pair) + ".arm";
  return rte_rawdev_set_attr(s.dev, name.c_str(), 1u << RTE_RAW_RIO_SHARED);
}

std::string pass(const Session& s, uint64_t* interrupts) {
  rte_raw_rio_buffer buffer{.iova = s.in_iova, .cookie = 7};
  if (enqueue(s, s.shared, &buffer) != 1) {
    return "a buffer is not taken";
  }
  if (arm(s) != 0) {
    return "cannot arm";
  }
  rte_raw_rio_message in{};
  if (dequeue(s, s.shared, &in) != 0 || sleep_for(s, kQuietMs) != 0) {
    return "a message came before one was sent";
  }
  rte_raw_rio_tx out{};
  out.iova = s.out_iova;
  out.dest_id = s.dest_id;
  out.length_bytes = 64;
  if (enqueue(s, s.tx, &out) != 1) {
    return "a message is not taken";
  }
  const uint64_t raised = sleep_for(s, kSleepMs);
  if (raised != 1) {
    return "raised " + std::to_string(raised) + " times, not once";
  }
  if (dequeue(s, s.shared, &in) != 1 || in.status != RTE_RAW_RIO_OK || in.cookie != 7) {
    return "woken, and no message is there";
  }
  *interrupts += raised;
  rte_raw_rio_tx_done done{};
  while (dequeue(s, s.tx, &done) ==
         0) {  // the card completes each message, if only with a time-out
  }
  return done.status == RTE_RAW_RIO_OK ? "" : "the message was not delivered";
}

std::string run(Session* s, uint32_t rounds, uint64_t* interrupts) {
  const std::string qp = "qp" + std::to_string(s->tx.queue_pair);
  uint64_t fd = 0;
  uint64_t dest_id = 0;
  if (rte_rawdev_get_attr(s->dev, (qp + ".irq_fd").c_str(), &fd) != 0 ||
      rte_rawdev_get_attr(s->dev, (qp + ".dest_id").c_str(), &dest_id) != 0) {
    return "no descriptor, or no destID";
  }
  s->dest_id = static_cast<uint32_t>(dest_id);
  epoll_event event{.events = EPOLLIN, .data = {.fd = static_cast<int>(fd)}};
  if (epoll_ctl(s->poller, EPOLL_CTL_ADD, event.data.fd, &event) != 0) {
    return "epoll does not take the descriptor";
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    if (const std::string why = pass(*s, interrupts); !why.empty()) {
      return "round " + std::to_string(round) + ": " + why;
    }
  }
  return "";
}

}  // namespace

std::string sleep_and_receive(uint16_t dev, uint16_t qp, uint32_t rounds, uint64_t* interrupts) {
  const std::unique_ptr<void, void (*)(void*)> memory(
      rte_zmalloc(nullptr, 2 * kBufferBytes, kBufferBytes), rte_free);
  rte_raw_rio_queue_conf conf{};
  if (memory == nullptr || rte_rawdev_queue_conf_get(dev, qp, &conf, sizeof(conf)) != 0) {
    return "no memory, or no such queue pair";
  }
  conf.irq_rings = 1u << RTE_RAW_RIO_SHARED;
  if (rte_rawdev_queue_setup(dev, qp, &conf, sizeof(conf)) != 0 || rte_rawdev_start(dev) != 0) {
    return "cannot set up or start";
  }
  const uint64_t iova = rte_malloc_virt2iova(memory.get());
  Session session{.dev = dev,
                  .tx = {qp, RTE_RAW_RIO_TX},
                  .shared = {qp, RTE_RAW_RIO_SHARED},
                  .dest_id = 0,
                  .out_iova = iova + kBufferBytes,
                  .in_iova = iova,
                  .poller = epoll_create1(EPOLL_CLOEXEC)};
  std::string why = run(&session, rounds, interrupts);
  close(session.poller);
  rte_rawdev_stop(dev);
  if (rte_rawdev_queue_release(dev, qp) != 0 && why.empty()) {
    why = "cannot be released";
  }
  return why;
}

}  // namespace rio::test
