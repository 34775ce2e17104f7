// DMA devices whose card is reset: during a stream of writes, with requests under way and others
// waiting, with windows open.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_dmadev.h>
#include <rte_rawdev.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "pmd/dma/rte_dma_rio.h"
#include "tests/eal/dma_node.hpp"
#include "tests/eal/eal_process.hpp"

namespace rio::test {
namespace {

/// Copies to its own window on a thread, and checks each finished copy.
class Stream {
 public:
  static constexpr uint32_t kSlots = 64;
  static constexpr uint32_t kCopyBytes = 256;

  Stream(Node& node, rte_iova_t window) : node_(node), window_(window) {}
  void run() {
    uint32_t begun = 0;
    uint32_t told = 0;
    while (!stop.load() || told != begun) {
      while (!stop.load() && begun - told < kSlots && begin(begun)) {
        ++begun;
      }
      // The bursts do without the flag at times.
      rte_dma_submit(node_.id(), 0);
      rte_dma_status_code statuses[16];
      uint16_t last = 0;
      const uint16_t n = rte_dma_completed_status(node_.id(), 0, 16, &last, statuses);
      for (uint16_t i = 0; i < n; ++i, ++told) {
        look_at(told, statuses[i]);
      }
      wrong += n != 0 && last != static_cast<uint16_t>(told - 1) ? 1 : 0;
      wrong += n == 0 && last != static_cast<uint16_t>(told - 1) ? 1 : 0;
      looks = n != 0 ? 0 : looks + 1;
      if (looks == kLooks) {
        break;  // some copy was never reported
      }
    }
    left = begun - told;
  }

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> good{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> wrong{0};  // index, status, or bytes
  uint32_t left = 0;               // copies that were never reported
  uint32_t looks = 0;

 private:
  [[nodiscard]] bool begin(uint32_t number) {
    const size_t at = size_t{number % kSlots} * kCopyBytes;
    std::memset(from_.va + at, static_cast<int>(number * 37 + 1), kCopyBytes);
    const uint64_t flags = number % 3 == 0 ? RTE_DMA_OP_FLAG_SUBMIT : 0;
    const int rc = node_.copy(iova(from_.va + at), window_ + at, kCopyBytes, flags);
    wrong += rc != -ENOSPC && rc != static_cast<uint16_t>(number) ? 1 : 0;
    return rc >= 0;
  }
  void look_at(uint32_t number, rte_dma_status_code status) {
    const size_t at = size_t{number % kSlots} * kCopyBytes;
    if (status == RTE_DMA_STATUS_SUCCESSFUL) {
      ++good;
      wrong += std::memcmp(to.va + at, from_.va + at, kCopyBytes) != 0 ? 1 : 0;
    } else {
      ++failed;
      wrong += status != RTE_DMA_STATUS_DEV_LINK_ERROR ? 1 : 0;
    }
  }

  Node& node_;
  rte_iova_t window_;
  Memory from_{size_t{kSlots} * kCopyBytes};

 public:
  Memory to{size_t{kSlots} * kCopyBytes};
};

/// A test with dma_rio4 on a card of raw_rio3, which hears itself.
class DmaReset : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(rte_vdev_init("raw_rio3", "qps=2"), 0);
    ASSERT_EQ(rte_vdev_init("dma_rio4", "card=raw_rio3,qp=1"), 0);
    raw_ = rte_rawdev_get_dev_id("raw_rio3");
    node_ = Node("dma_rio4");
    ASSERT_EQ(rte_rawdev_queue_setup(raw_, 0, nullptr, 0), 0);
    ASSERT_EQ(rte_rawdev_start(raw_), 0);
    const uint32_t dest_id = rte_dma_rio_dest_id(node_.id());
    ASSERT_EQ(node_.start(RTE_DMA_DIR_MEM_TO_DEV, dest_id), 0);
  }
  void TearDown() override {
    node_.stop();
    rte_rawdev_stop(raw_);
    EXPECT_EQ(rte_vdev_uninit("dma_rio4"), 0);
    EXPECT_EQ(rte_vdev_uninit("raw_rio3"), 0);
  }
  uint32_t open(const Memory& memory, size_t bytes) {
    const rte_dma_rio_window window = {.rio_addr = kWindowAt,
                                       .iova = iova(memory.va),
                                       .len = bytes,
                                       .source = 0,
                                       .source_mask = 0,
                                       .key = kKey,
                                       .rights = RTE_DMA_RIO_WRITE,
                                       .reserved = {}};
    uint32_t index = ~0u;
    EXPECT_EQ(rte_dma_rio_window_open(node_.id(), &window, &index), 0);
    return index;
  }
  static bool grows(const std::atomic<uint64_t>& count, uint64_t by) {
    const uint64_t before = count;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (count < before + by && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return count >= before + by;
  }
  static constexpr rte_iova_t kThere = uint64_t{kKey} << 48 | kWindowAt;

  uint16_t raw_ = 0;
  Node node_{"dma_rio4"};
};

TEST_F(DmaReset, AStreamOfWritesSurvivesResets) {
  constexpr int kResets = 30;
  Stream stream(node_, kThere);
  open(stream.to, size_t{Stream::kSlots} * Stream::kCopyBytes);
  std::thread poller([&] { stream.run(); });
  int resets = 0;
  for (; resets < kResets && grows(stream.good, 100); ++resets) {
    EXPECT_EQ(rte_rawdev_reset(raw_), 0);
  }
  EXPECT_TRUE(grows(stream.good, 100)) << "after the last reset";
  stream.stop = true;
  poller.join();
  EXPECT_EQ(resets, kResets);
  EXPECT_EQ(stream.wrong, 0u);
  EXPECT_EQ(stream.left, 0u) << "each copy is reported";
  rte_dma_stats stats{};
  ASSERT_EQ(rte_dma_stats_get(node_.id(), 0, &stats), 0);
  EXPECT_EQ(stats.completed, stream.good + stream.failed) << "once";
  EXPECT_EQ(stats.submitted, stats.completed);
  EXPECT_EQ(stats.errors, stream.failed);
}

TEST_F(DmaReset, OperationsUnderWayFailAndWaitingOnesGoOn) {
  constexpr int kCopies = 63;  // more requests than the ring has room for
  Memory memory(kBytes);
  const uint32_t index = open(memory, kBytes);
  for (int i = 0; i < kCopies; ++i) {
    ASSERT_EQ(node_.copy(iova(memory.va), kThere, kBytes), i);
  }
  ASSERT_EQ(node_.copy(iova(memory.va), kThere, 64, 0), kCopies) << "not yet submitted";
  ASSERT_EQ(rte_rawdev_reset(raw_), 0);
  const auto all = node_.statuses(kCopies);
  ASSERT_EQ(all.size(), size_t{kCopies});
  for (const rte_dma_status_code status : all) {
    EXPECT_TRUE(status == RTE_DMA_STATUS_DEV_LINK_ERROR || status == RTE_DMA_STATUS_SUCCESSFUL);
  }
  EXPECT_EQ(all.back(), RTE_DMA_STATUS_DEV_LINK_ERROR);
  ASSERT_EQ(rte_dma_submit(node_.id(), 0), 0);
  EXPECT_EQ(node_.status(), RTE_DMA_STATUS_SUCCESSFUL);
  EXPECT_EQ(rte_dma_rio_window_close(node_.id(), index), 0) << "it is open again";
}

TEST_F(DmaReset, WindowsKeepTheirIndices) {
  Memory first(4096);
  Memory second(4096);
  const uint32_t closed = open(first, 4096);
  ASSERT_EQ(rte_dma_rio_window_close(node_.id(), closed), 0);
  const uint32_t a = open(first, 4096);
  rte_dma_rio_window window = {.rio_addr = 0x1000,
                               .iova = iova(second.va),
                               .len = 4096,
                               .source = 0,
                               .source_mask = 0,
                               .key = kKey,
                               .rights = RTE_DMA_RIO_WRITE,
                               .reserved = {}};
  uint32_t b = ~0u;
  ASSERT_EQ(rte_dma_rio_window_open(node_.id(), &window, &b), 0);
  ASSERT_EQ(rte_dma_rio_window_close(node_.id(), a), 0);  // leaves a free index before b
  ASSERT_EQ(rte_rawdev_reset(raw_), 0);
  EXPECT_EQ(rte_dma_rio_window_close(node_.id(), a), -ENOENT);
  Memory bytes(64);
  std::memset(bytes.va, 0x77, 64);
  ASSERT_EQ(node_.copy(iova(bytes.va), uint64_t{kKey} << 48 | 0x1000, 64), 0);
  EXPECT_EQ(node_.status(), RTE_DMA_STATUS_SUCCESSFUL);
  EXPECT_EQ(std::memcmp(second.va, bytes.va, 64), 0);
  EXPECT_EQ(rte_dma_rio_window_close(node_.id(), b), 0);
  ASSERT_EQ(node_.copy(iova(bytes.va), uint64_t{kKey} << 48 | 0x1000, 64), 1);
  EXPECT_EQ(node_.status(), RTE_DMA_STATUS_INVALID_ADDR);
}

/// Only copies from memory to memory need a window onto all memory.
TEST_F(DmaReset, TheDevicesOwnWindowIsOpenOnDemand) {
  Memory memory(4096);
  EXPECT_EQ(open(memory, 4096), 0u) << "all indices are the user's";
  node_.stop();
  ASSERT_EQ(node_.start(RTE_DMA_DIR_MEM_TO_MEM), 0);
  EXPECT_EQ(open(memory, 4096), 1u);
  {
    LogCapture log;
    EXPECT_EQ(rte_dma_rio_window_close(node_.id(), 0), -ENOENT) << "this one is the device's own";
  }
  ASSERT_EQ(rte_rawdev_reset(raw_), 0);
  std::memset(memory.va, 0x77, 64);
  ASSERT_EQ(node_.copy(iova(memory.va), iova(memory.va + 64), 64), 0);
  EXPECT_EQ(node_.status(), RTE_DMA_STATUS_SUCCESSFUL);
  EXPECT_EQ(memory.va[127], 0x77);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(argc, argv, "dma",
                                     {"-d", "librte_raw_rio.so", "--no-telemetry"});
}
