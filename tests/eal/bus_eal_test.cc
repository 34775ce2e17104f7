// Memory of EAL for a card, and the PCI bus with the BAR of an emulated card behind it.

#include <bus_pci_driver.h>
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_memzone.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>

#include "pmd/bus/eal/eal_memory.hpp"
#include "pmd/bus/eal/eal_pci_bus.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "tests/eal/eal_process.hpp"

namespace rio::pmd {
namespace {

constexpr size_t kMiB = 1 << 20;

class EalMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::unique_ptr<EalMemory> made;
    ASSERT_EQ(EalMemory::create("test", &made), 0);
    memory_ = std::move(made);
  }
  std::shared_ptr<EalMemory> memory_;
};

TEST_F(EalMemoryTest, AllocatesZeroedAndAligned) {
  for (const size_t align : {size_t{64}, size_t{4096}, size_t{65536}}) {
    DmaMemory got;
    ASSERT_EQ(memory_->alloc(5000, align, &got), 0);
    EXPECT_EQ(got.iova % align, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got.va) % align, 0u);
    EXPECT_EQ(got.len_bytes, 5000u);
    const auto* bytes = static_cast<const uint8_t*>(got.va);
    for (size_t i = 0; i < got.len_bytes; ++i) {
      ASSERT_EQ(bytes[i], 0);
    }
    std::memset(got.va, 0xFF, got.len_bytes);  // the next one may get the same memory
    memory_->free(got);
  }
}

TEST_F(EalMemoryTest, RefusesNonsense) {
  DmaMemory got;
  EXPECT_EQ(memory_->alloc(0, 64, &got), -EINVAL);
  EXPECT_EQ(memory_->alloc(64, 48, &got), -EINVAL);
  test::LogCapture log;
  EXPECT_EQ(memory_->alloc(size_t{1} << 40, 64, &got), -ENOMEM);
  std::unique_ptr<EalMemory> other;
  ASSERT_EQ(EalMemory::create("a tag of more than 24 characters", &other), 0);
  EXPECT_EQ(other->alloc(64, 64, &got), -EINVAL);
}

TEST_F(EalMemoryTest, QueuesAreInMemoryOfAllProcesses) {
  for (const size_t align : {size_t{8}, size_t{64}, size_t{4096}}) {
    void* const got = memory_->shared_alloc(1000, align);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got) % align, 0u);
    EXPECT_NE(rte_mem_virt2memseg(got, nullptr), nullptr) << "in memory that EAL shares";
    for (size_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(static_cast<const uint8_t*>(got)[i], 0);
    }
    std::memset(got, 0xFF, 1000);
    memory_->shared_free(got);
  }
  test::LogCapture log;
  EXPECT_EQ(memory_->shared_alloc(size_t{1} << 40, 64), nullptr);
}

TEST_F(EalMemoryTest, ShowsTheCardItsAllocations) {
  DmaMemory got;
  ASSERT_EQ(memory_->alloc(4 * kMiB, 4096, &got), 0);
  EmuWindow window;
  ASSERT_TRUE(memory_->view().find(got.iova, &window));
  EXPECT_TRUE(window.holds(got.iova, got.len_bytes)) << "one window despite many pages";
  EXPECT_EQ(window.at(got.iova), got.va);
  memory_->free(got);
}

TEST_F(EalMemoryTest, ShowsTheCardMemoryOfRteMalloc) {
  void* const va = rte_malloc("test", 100'000, 64);
  EmuWindow window;
  ASSERT_TRUE(memory_->view().find(rte_malloc_virt2iova(va), &window));
  EXPECT_EQ(window.at(rte_malloc_virt2iova(va)), va);
  rte_free(va);
}

TEST_F(EalMemoryTest, KnowsNoOtherMemory) {
  EmuWindow window;
  EXPECT_FALSE(memory_->view().find(0, &window));
  EXPECT_FALSE(memory_->view().find(0xDEAD'0000, &window));
  EXPECT_FALSE(memory_->view().find(UINT64_MAX, &window));
  int on_stack = 0;
  EXPECT_FALSE(memory_->view().find(reinterpret_cast<uint64_t>(&on_stack), &window));
}

TEST_F(EalMemoryTest, FollowsMemoryThatComesAndGoes) {
  if (rte_eal_has_hugepages() == 0) {
    GTEST_SKIP() << "without hugepages EAL's memory never changes";
  }
  const uint32_t before = memory_->view().generation();
  void* const va = rte_malloc("test", 24 * kMiB, 4096);  // more than is free: hugepages are added
  ASSERT_NE(va, nullptr);
  const uint64_t iova = rte_malloc_virt2iova(va);
  EmuWindow window;
  ASSERT_TRUE(memory_->view().find(iova, &window));
  EXPECT_TRUE(window.holds(iova, 24 * kMiB));
  rte_free(va);
  if (rte_mem_virt2memseg(va, nullptr) == nullptr) {  // given back to the system
    EXPECT_FALSE(memory_->view().find(iova, &window));
    EXPECT_NE(memory_->view().generation(), before);
  }
}

TEST_F(EalMemoryTest, MapsMemoryOfTheProcess) {
  void* const va = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::vector<IovaRun> runs;
  ASSERT_EQ(memory_->map(va, kMiB, &runs), 0);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].len_bytes, kMiB);
  EXPECT_EQ(memory_->map(va, kMiB, &runs), -EEXIST);
  EXPECT_EQ(memory_->map(static_cast<uint8_t*>(va) + 4096, 4096, &runs), 0) << "inside: reachable";
  EmuWindow window;
  ASSERT_TRUE(memory_->view().find(runs[0].iova, &window));
  const uint32_t before = memory_->view().generation();
  EXPECT_EQ(memory_->unmap(va, 4096), -ENOENT);
  EXPECT_EQ(memory_->unmap(va, kMiB), 0);
  EXPECT_NE(memory_->view().generation(), before);
  EXPECT_FALSE(memory_->view().find(reinterpret_cast<uint64_t>(va), &window));
  munmap(va, kMiB);
}

TEST_F(EalMemoryTest, GivesTheRunsOfEalsOwnMemory) {
  DmaMemory got;
  ASSERT_EQ(memory_->alloc(64 * 1024, 4096, &got), 0);
  std::vector<IovaRun> runs;
  ASSERT_EQ(memory_->map(got.va, got.len_bytes, &runs), 0);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].iova, got.iova);
  EXPECT_EQ(runs[0].len_bytes, got.len_bytes);
  EXPECT_EQ(memory_->unmap(got.va, got.len_bytes), 0);
  memory_->free(got);
}

TEST(MemsegView, CutsWindows) {
  std::unique_ptr<MemsegView> view;
  ASSERT_EQ(MemsegView::create(&view), 0);
  static uint8_t bytes[16 * 4096];
  constexpr uint64_t kAt = 0x4000'0000'0000;
  EmuWindow window;
  ASSERT_EQ(view->add(bytes, kAt, 4 * 4096), 0);
  ASSERT_EQ(view->add(bytes + 4 * 4096, kAt + 4 * 4096, 4 * 4096), 0);
  ASSERT_TRUE(view->find(kAt, &window));
  EXPECT_TRUE(window.holds(kAt, 8 * 4096)) << "neighbours become one";
  EXPECT_EQ(view->add(bytes + 12 * 4096, kAt + 4096, 4096), -EEXIST);
  EXPECT_EQ(view->add(bytes + 12 * 4096, kAt - 4096, 2 * 4096), -EEXIST);
  ASSERT_EQ(view->remove(bytes + 2 * 4096, 4096), 0);
  ASSERT_TRUE(view->find(kAt, &window));
  EXPECT_TRUE(window.holds(kAt, 2 * 4096));
  EXPECT_FALSE(window.holds(kAt, 2 * 4096 + 1));
  EXPECT_FALSE(view->find(kAt + 2 * 4096, &window));
  ASSERT_TRUE(view->find(kAt + 3 * 4096, &window));
  EXPECT_EQ(window.at(kAt + 3 * 4096), bytes + 3 * 4096);
  EXPECT_TRUE(window.holds(kAt + 3 * 4096, 5 * 4096));
  EXPECT_FALSE(window.holds(kAt + 3 * 4096, 5 * 4096 + 1));
  std::vector<IovaRun> runs;
  EXPECT_EQ(view->runs(bytes, 4 * 4096, &runs), -ENOENT) << "a gap";
  EXPECT_EQ(view->runs(bytes, 2 * 4096, &runs), 0);
  EXPECT_EQ(view->remove(bytes, sizeof(bytes)), 0);
  EXPECT_FALSE(view->find(kAt, &window));
  EXPECT_FALSE(view->find(kAt + 3 * 4096, &window));
  EXPECT_EQ(view->remove(bytes, sizeof(bytes)), -ENOENT);
}

/// A card may look up addresses while other threads map: under TSan this finds missing locks.
TEST(MemsegView, IsReadWhileItChanges) {
  std::unique_ptr<MemsegView> view;
  ASSERT_EQ(MemsegView::create(&view), 0);
  static uint8_t bytes[4096];
  constexpr uint64_t kAt = 0x5000'0000'0000;
  std::atomic<bool> stop{false};
  std::thread looker([&] {
    EmuWindow window;
    while (!stop.load(std::memory_order_relaxed)) {
      if (view->find(kAt, &window)) {
        ASSERT_EQ(window.va, bytes);
      }
      (void)view->generation();
    }
  });
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(view->add(bytes, kAt, sizeof(bytes)), 0);
    ASSERT_EQ(view->remove(bytes, sizeof(bytes)), 0);
  }
  stop = true;
  looker.join();
}

TEST(Zones, OfDeadProcessesAreFreed) {
  Zones zones("dead.1");
  Zones others("dead.12");
  DmaMemory got;
  ASSERT_EQ(zones.alloc(64, 64, &got), 0);
  ASSERT_EQ(zones.alloc(64, 64, &got), 0);
  ASSERT_EQ(others.alloc(64, 64, &got), 0);
  zones.leave_to_others();
  EXPECT_EQ(free_zones("dead.1"), 2u) << "not those of dead.12";
  EXPECT_EQ(free_zones("dead.1"), 0u);
}

/// A PCI device without a bus; its BAR is that of an emulated card.
class EalPciBusTest : public EalMemoryTest {
 protected:
  void SetUp() override {
    EalMemoryTest::SetUp();
    EmuConfig config;
    config.model.queue_pairs = 2;
    config.model.stepping = Stepping::kThread;
    ASSERT_EQ(EmuBus::create(config, memory_, &emulator_), 0);
    std::strcpy(device_.name, "0000:03:00.0");
    device_.device.numa_node = 1;
    device_.mem_resource[0].addr = emulator_->bar_memory().va;
    device_.mem_resource[0].len = emulator_->bar_memory().len_bytes;
  }
  rte_pci_device device_{};
  std::unique_ptr<EmuBus> emulator_;
};

TEST_F(EalPciBusTest, CarriesTheDriver) {
  std::unique_ptr<EalPciBus> bus;
  ASSERT_EQ(EalPciBus::create(&device_, 0, "pci", &bus), 0);
  EXPECT_EQ(bus->name(), "0000:03:00.0");
  EXPECT_EQ(bus->numa_node(), 1);
  EXPECT_EQ(bus->poll_hook(0).fn, nullptr) << "a real card needs no steps";
  EXPECT_EQ(bus->irq_fd(0), -ENOTSUP) << "no interrupt handle";

  std::unique_ptr<Card> card;
  CardConfig config;
  config.dest_ids = {0x10, 0x11};
  ASSERT_EQ(Card::open(*bus, config, &card), 0);
  std::unique_ptr<QueuePair> pair;
  ASSERT_EQ(card->open_queue_pair(1, {}, &pair), 0);
  EXPECT_NE(rte_mem_virt2memseg(&pair->tx(), nullptr), nullptr) << "other processes see the queues";
  DmaMemory buffer;
  ASSERT_EQ(bus->dma_alloc(4096, 4096, &buffer), 0);
  const RxBuffer rx{.iova = buffer.iova, .cookie = 5};
  ASSERT_EQ(pair->shared().post(&rx, 1), 1);
  const TxMessage message{.data = "through",
                          .cookie = 6,
                          .dest_id = 0x11,
                          .length_bytes = 8,
                          .mbox = 0,
                          .flags = TxFlags::kInline};
  ASSERT_EQ(pair->tx().burst(&message, 1), 1);
  RxMessage got{};
  while (pair->shared().burst(&got, 1) == 0) {
    std::this_thread::yield();
  }
  EXPECT_STREQ(static_cast<const char*>(buffer.va), "through");
  pair.reset();
  bus->dma_free(buffer);
}

TEST_F(EalPciBusTest, MapsEalsMemoryOnlyWithoutVfio) {
  std::unique_ptr<EalPciBus> bus;
  ASSERT_EQ(EalPciBus::create(&device_, 0, "pci", &bus), 0);
  DmaMemory got;
  ASSERT_EQ(memory_->alloc(3 * kMiB, 4096, &got), 0);
  std::vector<IovaRun> runs;
  ASSERT_EQ(bus->dma_map(got.va, got.len_bytes, &runs), 0);
  ASSERT_EQ(runs.size(), 1u) << "coalesced";
  EXPECT_EQ(runs[0].iova, got.iova);
  EXPECT_EQ(bus->dma_map(got.va, got.len_bytes, &runs), -EEXIST);
  EXPECT_EQ(bus->dma_unmap(got.va, got.len_bytes), 0);
  EXPECT_EQ(bus->dma_unmap(got.va, got.len_bytes), -ENOENT);
  memory_->free(got);
  static uint8_t other[4096];
  test::LogCapture log;
  EXPECT_EQ(bus->dma_map(other, sizeof(other), &runs), -ENOTSUP);
}

TEST_F(EalPciBusTest, RefusesImpossibleBars) {
  std::unique_ptr<EalPciBus> bus;
  EXPECT_EQ(EalPciBus::create(&device_, 1, "pci", &bus), -ENODEV);
  EXPECT_EQ(EalPciBus::create(&device_, 6, "pci", &bus), -EINVAL);
  device_.mem_resource[0].len = 4096;
  EXPECT_EQ(EalPciBus::create(&device_, 0, "pci", &bus), -EINVAL);
}

}  // namespace
}  // namespace rio::pmd

// The device is on no bus: its configuration space has the command register only.
extern "C" int rte_pci_read_config(const rte_pci_device* /*device*/, void* to, size_t len_bytes,
                                   off_t /*offset_bytes*/) {
  std::memset(to, 0, len_bytes);
  return static_cast<int>(len_bytes);
}

extern "C" int rte_pci_write_config(const rte_pci_device* /*device*/, const void* /*from*/,
                                    size_t len_bytes, off_t /*offset_bytes*/) {
  return static_cast<int>(len_bytes);
}

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(argc, argv, "bus", {"--no-telemetry"});
}
