#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "fpga/model/card.hpp"
#include "pmd/api/riopmd.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/unit/pmd/api/log_lines.hpp"

namespace rio {
namespace {

constexpr uint32_t kId = 9;

EndpointConfig config_of(uint32_t buffers = 0) {
  EndpointConfig config;
  config.dest_id = kId;
  config.message_buffers = buffers;
  return config;
}

std::unique_ptr<Endpoint> must_open(const std::string& name, const EndpointConfig& config) {
  std::unique_ptr<Endpoint> endpoint;
  EXPECT_EQ(Endpoint::open(name, config, &endpoint), 0);
  return endpoint;
}

/// An Endpoint on an emulated card that the test can harm.
std::unique_ptr<Endpoint> open_breakable(const EndpointConfig& config, model::Card** card) {
  std::unique_ptr<pmd::EmuBus> bus;
  EXPECT_EQ(pmd::EmuBus::create({}, nullptr, &bus), 0);
  *card = bus->card();
  std::unique_ptr<Endpoint> endpoint;
  EXPECT_EQ(Endpoint::open(std::move(bus), config, &endpoint), 0);
  return endpoint;
}

TEST(Endpoint, SendsToItself) {
  auto endpoint = must_open("emu:loop", config_of(8));
  EXPECT_EQ(endpoint->name(), "emu:loop/0");
  EXPECT_EQ(endpoint->queues().dest_id(), kId);
  EXPECT_TRUE(endpoint->caps().is_model);
  EXPECT_EQ(endpoint->align_rules().dedicated_size, 256u);
  ASSERT_EQ(endpoint->wait_link(1000), 0);

  uint32_t index[2];
  ASSERT_EQ(endpoint->buffers()->get(index, 2), 2u);
  std::memset(endpoint->buffers()->va(index[0]), 0x5A, 4096);
  const pmd::RxBuffer empty{endpoint->buffers()->iova(index[1]), 1};
  ASSERT_EQ(endpoint->shared().post(&empty, 1), 1);
  pmd::TxMessage message{};
  message.iova = endpoint->buffers()->iova(index[0]);
  message.dest_id = kId;
  message.length_bytes = 4096;
  ASSERT_EQ(endpoint->tx().burst(&message, 1), 1);
  pmd::RxMessage got{};
  for (int i = 0; i < 1000 && endpoint->shared().burst(&got, 1) == 0; ++i) {
  }
  EXPECT_EQ(got.status, pmd::Status::kOk);
  EXPECT_EQ(got.length_bytes, 4096);
  EXPECT_EQ(std::memcmp(endpoint->buffers()->va(index[0]), endpoint->buffers()->va(index[1]), 4096),
            0);
  EXPECT_EQ(endpoint->close(), 0);
  EXPECT_EQ(endpoint->close(), 0);
}

TEST(Endpoint, OpenedTwice) {
  test::LogLines log;
  auto one = must_open("emu:opened-twice", config_of());
  auto two = must_open("emu:opened-twice", config_of());
  std::unique_ptr<Endpoint> three;
  EXPECT_EQ(Endpoint::open("emu:opened-twice", config_of(), &three), -EBUSY);
  EXPECT_TRUE(log.had("'opened-twice' has two ends already; take another name"));
  EXPECT_EQ(three, nullptr);
  two.reset();
  EXPECT_EQ(Endpoint::open("emu:opened-twice", config_of(), &three), 0);
}

TEST(Endpoint, QueuePairs) {
  test::LogLines log;
  auto first = must_open("emu:loop,qps=2", config_of());
  EndpointConfig config = config_of();
  std::unique_ptr<Endpoint> other;
  EXPECT_EQ(first->open_queue_pair(config, &other), -EBUSY);
  EXPECT_TRUE(log.had("qp 0 is in use")) << log.last();
  config.queue_pair = 2;
  EXPECT_EQ(first->open_queue_pair(config, &other), -ENOENT);
  EXPECT_TRUE(log.had("no queue pair 2; the card has 2")) << log.last();
  config.queue_pair = 1;
  ASSERT_EQ(first->open_queue_pair(config, &other), 0);
  EXPECT_EQ(other->queues().dest_id(), kId + 1);
  first.reset();  // the card stays with the other one
  EXPECT_EQ(other->queues().dest_id(), kId + 1);
  pmd::TxMessage message{};
  message.data = "inline";
  message.dest_id = kId + 1;
  message.length_bytes = 6;
  message.flags = pmd::TxFlags::kInline;
  EXPECT_EQ(other->tx().burst(&message, 1), 1);
  EXPECT_EQ(other->close(), 0);
}

TEST(Endpoint, WrongConfig) {
  test::LogLines log;
  std::unique_ptr<Endpoint> endpoint;
  EndpointConfig config = config_of();
  config.queues.tx_log2 = 20;
  EXPECT_EQ(Endpoint::open("emu:loop", config, &endpoint), -EINVAL);
  EXPECT_TRUE(log.had("tx")) << log.last();
  config = config_of();
  config.dest_id = 0x10000;
  EXPECT_EQ(Endpoint::open("emu:loop", config, &endpoint), -EINVAL);
  EXPECT_TRUE(log.had("destID 65536 (0x10000) is wider than the 16 bits")) << log.last();
  config = config_of(pmd::mem::BufferPool::kCountMax + 1);
  EXPECT_EQ(Endpoint::open("emu:loop", config, &endpoint), -EINVAL);
  EXPECT_TRUE(log.had("message buffers")) << log.last();
  config = config_of();
  config.irq_rings = pmd::ring_bit(regs::Ring::kShared);
  EXPECT_EQ(Endpoint::open("emu:loop", config, &endpoint), -ENOTSUP);
  EXPECT_TRUE(log.had("open it with stepping=thread")) << log.last();
  config.irq_rings = 1u << 16;
  EXPECT_EQ(Endpoint::open("emu:loop,stepping=thread", config, &endpoint), -EINVAL);
  EXPECT_EQ(Endpoint::open(std::unique_ptr<pmd::Bus>(), config, &endpoint), -EINVAL);
  EXPECT_EQ(endpoint, nullptr);
}

TEST(Endpoint, NoLink) {
  test::LogLines log;
  auto lonely = must_open("emu:lonely", config_of());
  EXPECT_EQ(lonely->wait_link(5), -ETIMEDOUT);
  EXPECT_TRUE(log.had("open the card at the other end")) << log.last();
}

TEST(Endpoint, Memory) {
  test::LogLines log;
  auto endpoint = must_open("emu:loop", config_of(4));
  pmd::DmaMemory memory;
  EXPECT_EQ(endpoint->alloc(0, 8, &memory), -EINVAL);
  EXPECT_EQ(endpoint->alloc(8, 0, &memory), -EINVAL);
  EXPECT_EQ(endpoint->alloc(8, 24, &memory), -EINVAL);
  EXPECT_EQ(endpoint->alloc(SIZE_MAX, 8, &memory), -EINVAL);
  EXPECT_TRUE(log.had("aligned to a power of two"));
  ASSERT_EQ(endpoint->alloc(5000, 8192, &memory), 0);
  EXPECT_EQ(memory.len_bytes, 5000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.va) % 8192, 0u);
  EXPECT_EQ(memory.iova % 8192, 0u);
  uint64_t iova = 0;
  EXPECT_EQ(endpoint->iova(static_cast<uint8_t*>(memory.va) + 100, 4900, &iova), 0);
  EXPECT_EQ(iova, memory.iova + 100);
  EXPECT_EQ(endpoint->iova(endpoint->buffers()->va(1), 4096, &iova), 0);
  EXPECT_EQ(iova, endpoint->buffers()->iova(1));
  EXPECT_EQ(endpoint->iova(memory.va, 8193, &iova), -ENOENT);

  const pmd::mem::Region* region = nullptr;
  ASSERT_EQ(endpoint->register_memory(memory.va, 10, &region), 0);
  EXPECT_EQ(endpoint->free(memory), -EBUSY);
  EXPECT_TRUE(log.had("unregister it first"));
  EXPECT_EQ(endpoint->unregister_memory(memory.va, 11), -ENOENT);
  EXPECT_EQ(endpoint->unregister_memory(memory.va, 10), 0);
  EXPECT_EQ(endpoint->free(memory), 0);
  EXPECT_EQ(endpoint->free(memory), -ENOENT);
  EXPECT_TRUE(log.had("is free already"));

  // The program's own memory; left registered, so that closing has something to do.
  constexpr size_t kBytes = 16384;
  void* own = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(own, MAP_FAILED);
  ASSERT_EQ(endpoint->register_memory(static_cast<uint8_t*>(own) + 1, 5000, &region), 0);
  EXPECT_EQ(region->len_bytes, 8192u);
  EXPECT_EQ(endpoint->iova(own, 8192, &iova), 0);
  EXPECT_EQ(endpoint->iova(own, kBytes, &iova), -ENOENT);
  EXPECT_EQ(endpoint->register_memory(nullptr, 1, nullptr), -EINVAL);
  EXPECT_EQ(endpoint->register_memory(own, 0, nullptr), -EINVAL);
  ASSERT_EQ(endpoint->alloc(1, 1, &memory), 0);
  EXPECT_EQ(endpoint->close(), 0);
  munmap(own, kBytes);
}

TEST(Endpoint, CardGoneWhileOpen) {
  test::LogLines log;
  model::Card* card = nullptr;
  auto endpoint = open_breakable(config_of(8), &card);
  const pmd::RxBuffer empty{endpoint->buffers()->iova(0), 0};
  ASSERT_EQ(endpoint->shared().post(&empty, 1), 1);
  card->vanish();
  EXPECT_TRUE(endpoint->card().gone());
  EXPECT_EQ(endpoint->wait_link(10), -ENODEV);
  pmd::RxMessage got;
  EXPECT_EQ(endpoint->shared().burst(&got, 1), 0);
  uint32_t word = 0;
  EXPECT_EQ(endpoint->maint().read_local(0, {&word, 1}, 5), -ENODEV);
  pmd::DedicatedRxQueue* dedicated = nullptr;
  EXPECT_EQ(endpoint->open_dedicated(0, 1, 0, &dedicated), -ENODEV);
  std::unique_ptr<Endpoint> other;
  EXPECT_EQ(endpoint->open_queue_pair(config_of(), &other), -ENODEV);
  EXPECT_EQ(endpoint->close(), -ENODEV);
  EXPECT_TRUE(log.had("card is gone")) << log.last();
}

TEST(Endpoint, CardGoneBeforeOpen) {
  test::LogLines log;
  std::unique_ptr<pmd::EmuBus> bus;
  ASSERT_EQ(pmd::EmuBus::create({}, nullptr, &bus), 0);
  bus->card()->vanish();
  std::unique_ptr<Endpoint> endpoint;
  EXPECT_EQ(Endpoint::open(std::move(bus), config_of(), &endpoint), -ENODEV);
  EXPECT_TRUE(log.had("gone")) << log.last();
}

// The card does not answer the stop: its memory must not be given to another owner.
TEST(Endpoint, CardSilentAtClose) {
  test::LogLines log;
  pmd::EmuConfig emu;
  emu.model.stepping = pmd::Stepping::kManual;
  std::unique_ptr<pmd::EmuBus> bus;
  ASSERT_EQ(pmd::EmuBus::create(emu, nullptr, &bus), 0);
  model::Card* const card = bus->card();
  std::jthread stepper([card](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      card->step();
    }
  });
  EndpointConfig config = config_of(1);
  config.queues.stop_timeout_ms = 500;
  config.queues.rings = pmd::ring_bit(regs::Ring::kShared);
  std::unique_ptr<Endpoint> endpoint;
  ASSERT_EQ(Endpoint::open(std::move(bus), config, &endpoint), 0);
  auto* const bytes = endpoint->buffers()->va(0);
  stepper.request_stop();
  stepper.join();
  EXPECT_EQ(endpoint->close(), -ETIMEDOUT);
  EXPECT_TRUE(log.had("stays allocated")) << log.last();
  endpoint.reset();
  bytes[0] = 1;  // still there
  card->step();  // and so is the card
}

TEST(Endpoint, CloseWithTrafficInFlight) {
  auto left = must_open("emu:in-flight,exact=1", config_of(64));
  EndpointConfig config = config_of(64);
  config.dest_id = kId + 1;
  auto right = must_open("emu:in-flight,exact=1", config);
  ASSERT_EQ(left->wait_link(1000), 0);
  ASSERT_EQ(right->wait_link(1000), 0);
  for (uint32_t i = 0; i < 16; ++i) {
    const pmd::RxBuffer empty{right->buffers()->iova(i), i};
    ASSERT_EQ(right->shared().post(&empty, 1), 1);
    pmd::TxMessage message{};
    message.iova = left->buffers()->iova(i);
    message.dest_id = kId + 1;
    message.length_bytes = 4096;
    ASSERT_EQ(left->tx().burst(&message, 1), 1);
  }
  EXPECT_EQ(right->close(), 0);  // partly received
  EXPECT_EQ(left->close(), 0);   // partly sent
}

TEST(Endpoint, Interrupts) {
  EndpointConfig config = config_of(8);
  config.irq_rings = pmd::ring_bit(regs::Ring::kShared) | pmd::ring_bit(regs::Ring::kTx);
  auto endpoint = must_open("emu:loop,stepping=thread", config);
  ASSERT_GE(endpoint->irq_fd(), 0);
  EXPECT_EQ(endpoint->irq_ack(), 0);
  {
    test::LogLines log;
    EXPECT_EQ(endpoint->irq_arm(pmd::ring_bit(regs::Ring::kDoorbell)), -EINVAL);
  }
  const pmd::RxBuffer empty{endpoint->buffers()->iova(0), 0};
  ASSERT_EQ(endpoint->shared().post(&empty, 1), 1);
  EXPECT_EQ(endpoint->irq_arm(config.irq_rings), 0);
  auto without = must_open("emu:loop", config_of());
  EXPECT_EQ(without->irq_fd(), -ENOENT);
  EXPECT_EQ(without->irq_ack(), -ENOENT);
  EXPECT_EQ(without->irq_arm(0), 0);
}

TEST(Endpoint, Pinning) {
  test::LogLines log;
  auto endpoint = must_open("emu:loop", config_of());
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::jthread([&] {
    EXPECT_EQ(endpoint->pin_poller("nonsense"), -EINVAL);
    EXPECT_TRUE(log.had("no list of CPUs"));
    EXPECT_EQ(endpoint->pin_poller("65535"), -EINVAL);
    const int cpu = endpoint->pin_poller();
    ASSERT_GE(cpu, 0);
    EXPECT_EQ(sched_getcpu(), cpu);
    EXPECT_EQ(endpoint->pin_poller(), cpu);  // its own CPU is not in its way
    std::jthread([&] {
      EXPECT_EQ(endpoint->pin_poller(std::to_string(cpu)), -EBUSY);
      EXPECT_TRUE(log.had("has a poller of this process already")) << log.last();
    }).join();
  }).join();
  // More pollers than CPUs: they share, and are told so.
  const unsigned cpus = static_cast<unsigned>(CPU_COUNT(&before));
  if (cpus <= 64) {
    std::vector<std::jthread> pollers;
    std::atomic<unsigned> pinned{0};
    for (unsigned i = 0; i <= cpus; ++i) {
      pollers.emplace_back([&](const std::stop_token& stop) {
        EXPECT_GE(endpoint->pin_poller(), 0);
        ++pinned;
        while (!stop.stop_requested()) {
          std::this_thread::yield();
        }
      });
    }
    while (pinned <= cpus) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(log.had("share")) << log.last();
  }
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));  // this thread never asked
}

}  // namespace
}  // namespace rio
