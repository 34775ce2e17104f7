// DMA devices: to and from the memory of another node, through dmadev's functions alone; and
// devices of two classes on one card.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "pmd/dma/rte_dma_rio.h"
#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kLooks = 20'000'000;  // no wait is longer
constexpr size_t kBytes = 3 << 20;       // more than one request of the card
constexpr uint64_t kWindowAt = 0x40000000;
constexpr uint16_t kKey = 0x5A5A;

rte_iova_t iova(const void* va) {
  return rte_mem_virt2iova(va);
}

struct Memory {
  explicit Memory(size_t bytes) : va(static_cast<uint8_t*>(rte_zmalloc("dma", bytes, 64))) {}
  ~Memory() { rte_free(va); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  uint8_t* va;
};

/// One channel of one device.
class Node {
 public:
  explicit Node(const char* name) : id_(static_cast<int16_t>(rte_dma_get_dev_id_by_name(name))) {}

  int start(rte_dma_direction direction, uint32_t dest_id = 0,
            rte_dma_rio_write write = RTE_DMA_RIO_NWRITE_R, uint16_t slots = 64) {
    const rte_dma_conf conf = {.nb_vchans = 1, .enable_silent = false};
    if (const int rc = rte_dma_configure(id_, &conf); rc != 0) {
      return rc;
    }
    rte_dma_vchan_conf channel{};
    channel.direction = direction;
    channel.nb_desc = slots;
    rte_dma_port_param* const port =
        direction == RTE_DMA_DIR_DEV_TO_MEM ? &channel.src_port : &channel.dst_port;
    if (direction != RTE_DMA_DIR_MEM_TO_MEM) {
      rte_dma_rio_port(port, dest_id, write, 1);
      port->reserved[1] |= spoil;
    }
    const int rc = rte_dma_vchan_setup(id_, 0, &channel);
    return rc != 0 ? rc : rte_dma_start(id_);
  }
  void stop() { EXPECT_EQ(rte_dma_stop(id_), 0); }
  int copy(rte_iova_t from, rte_iova_t to, uint32_t bytes,
           uint64_t flags = RTE_DMA_OP_FLAG_SUBMIT) {
    return rte_dma_copy(id_, 0, from, to, bytes, flags);
  }
  /// The next `n` statuses, while `other` works too.
  std::vector<rte_dma_status_code> statuses(uint16_t n, Node* other = nullptr) {
    std::vector<rte_dma_status_code> all;
    for (uint32_t look = 0; look < kLooks && all.size() < n; ++look) {
      rte_dma_status_code some[32];
      uint16_t last = 0;
      const auto left = static_cast<uint16_t>(std::min<size_t>(n - all.size(), 32));
      const uint16_t got = rte_dma_completed_status(id_, 0, left, &last, some);
      all.insert(all.end(), some, some + got);
      if (other != nullptr) {
        rte_dma_completed(other->id_, 0, 1, nullptr, nullptr);
      }
    }
    return all;
  }
  rte_dma_status_code status(Node* other = nullptr) {
    const auto all = statuses(1, other);
    EXPECT_EQ(all.size(), 1u) << "nothing ended";
    return all.empty() ? RTE_DMA_STATUS_ERROR_UNKNOWN : all[0];
  }
  int16_t id() const { return id_; }

  uint64_t spoil = 0;  // bits of what the port says

 private:
  int16_t id_;
};

class DmaPair : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < kBytes; ++i) {
      ours_.va[i] = static_cast<uint8_t>(i * 7 + (i >> 9));
    }
  }
  void TearDown() override {
    a_.stop();
    b_.stop();
  }
  /// b opens its memory, a gets a way there or from there.
  void begin(rte_dma_direction direction, rte_dma_rio_write write = RTE_DMA_RIO_NWRITE_R,
             uint8_t rights = RTE_DMA_RIO_READ | RTE_DMA_RIO_WRITE) {
    ASSERT_EQ(b_.start(RTE_DMA_DIR_DEV_TO_MEM), 0);
    ASSERT_EQ(a_.start(direction, rte_dma_rio_dest_id(b_.id()), write), 0);
    const rte_dma_rio_window window = {.rio_addr = kWindowAt,
                                       .iova = iova(theirs_.va),
                                       .len = kBytes,
                                       .source = rte_dma_rio_dest_id(a_.id()),
                                       .source_mask = UINT32_MAX,
                                       .key = kKey,
                                       .rights = rights,
                                       .reserved = {}};
    ASSERT_EQ(rte_dma_rio_window_open(b_.id(), &window, &window_), 0);
  }
  static rte_iova_t there(uint64_t at = 0) { return uint64_t{kKey} << 48 | (kWindowAt + at); }

  Memory ours_{kBytes};
  Memory theirs_{kBytes};
  Node a_{"dma_rio0"};
  Node b_{"dma_rio1"};
  uint32_t window_ = 0;
};

TEST_F(DmaPair, WritesToANode) {
  for (const rte_dma_rio_write write :
       {RTE_DMA_RIO_NWRITE_R, RTE_DMA_RIO_NWRITE, RTE_DMA_RIO_SWRITE}) {
    std::memset(theirs_.va, 0, kBytes);
    begin(RTE_DMA_DIR_MEM_TO_DEV, write);
    ASSERT_EQ(a_.copy(iova(ours_.va), there(), kBytes), 0);
    EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_SUCCESSFUL);
    for (uint32_t look = 0; look < kLooks && theirs_.va[kBytes - 1] != ours_.va[kBytes - 1];
         ++look) {
      rte_dma_completed(b_.id(), 0, 1, nullptr, nullptr);
    }
    EXPECT_EQ(std::memcmp(ours_.va, theirs_.va, kBytes), 0) << write;
    TearDown();
  }
  begin(RTE_DMA_DIR_MEM_TO_DEV);
}

TEST_F(DmaPair, ReadsFromANode) {
  begin(RTE_DMA_DIR_DEV_TO_MEM);
  Memory got(kBytes);
  std::memcpy(theirs_.va, ours_.va, kBytes);
  ASSERT_EQ(a_.copy(there(), iova(got.va), kBytes), 0);
  EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_SUCCESSFUL);
  EXPECT_EQ(std::memcmp(got.va, theirs_.va, kBytes), 0);
}

TEST_F(DmaPair, ListsOfPlacesNeedNotMatch) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  rte_dma_sge from[] = {{iova(ours_.va), 100},
                        {iova(ours_.va + 500), 1000},
                        {iova(ours_.va + 9000), 0},
                        {iova(ours_.va + 5000), 400}};
  rte_dma_sge to[] = {{there(8), 700}, {there(10000), 800}};
  ASSERT_EQ(rte_dma_copy_sg(a_.id(), 0, from, to, 4, 2, RTE_DMA_OP_FLAG_SUBMIT), 0);
  EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_SUCCESSFUL);
  std::vector<uint8_t> wanted;
  for (const auto& [at, length] : {std::pair{0, 100}, {500, 1000}, {5000, 400}}) {
    wanted.insert(wanted.end(), ours_.va + at, ours_.va + at + length);
  }
  EXPECT_EQ(std::memcmp(theirs_.va + 8, wanted.data(), 700), 0);
  EXPECT_EQ(std::memcmp(theirs_.va + 10000, wanted.data() + 700, 800), 0);
  to[1].length = 801;
  EXPECT_EQ(rte_dma_copy_sg(a_.id(), 0, from, to, 4, 2, 0), -EINVAL);
  EXPECT_EQ(rte_dma_copy_sg(a_.id(), 0, from, to, 17, 2, 0), -EINVAL);
}

TEST_F(DmaPair, AFenceWaitsForAllBefore) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  // The small one would overtake the large one, whose end it is written over.
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), kBytes), 0);
  ASSERT_EQ(a_.copy(iova(ours_.va + 64), there(kBytes - 64), 64,
                    RTE_DMA_OP_FLAG_FENCE | RTE_DMA_OP_FLAG_SUBMIT),
            1);
  const auto all = a_.statuses(2, &b_);
  EXPECT_EQ(all, (std::vector{RTE_DMA_STATUS_SUCCESSFUL, RTE_DMA_STATUS_SUCCESSFUL}));
  EXPECT_EQ(std::memcmp(theirs_.va + kBytes - 64, ours_.va + 64, 64), 0);
  EXPECT_EQ(std::memcmp(theirs_.va, ours_.va, kBytes - 64), 0);
}

TEST_F(DmaPair, WhatTheNodeForbidsFailsAlone) {
  begin(RTE_DMA_DIR_MEM_TO_DEV, RTE_DMA_RIO_NWRITE_R, RTE_DMA_RIO_WRITE);
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), 64), 0);
  ASSERT_EQ(a_.copy(iova(ours_.va), kWindowAt, 64), 1) << "no key";
  ASSERT_EQ(a_.copy(iova(ours_.va), there(kBytes - 32), 64), 2) << "beyond the end";
  ASSERT_EQ(a_.copy(0x1000, there(), 64), 3) << "nothing is mapped there";
  ASSERT_EQ(a_.copy(iova(ours_.va), there(128), 64), 4);
  const auto all = a_.statuses(5, &b_);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0], RTE_DMA_STATUS_SUCCESSFUL);
  EXPECT_EQ(all[1], RTE_DMA_STATUS_INVALID_ADDR);
  EXPECT_EQ(all[2], RTE_DMA_STATUS_INVALID_ADDR);
  EXPECT_EQ(all[3], RTE_DMA_STATUS_BUS_READ_ERROR);
  EXPECT_EQ(all[4], RTE_DMA_STATUS_SUCCESSFUL);
  ASSERT_EQ(rte_dma_rio_window_close(b_.id(), window_), 0);
  EXPECT_EQ(rte_dma_rio_window_close(b_.id(), window_), -ENOENT);
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), 64), 5);
  EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_INVALID_ADDR);
  rte_dma_stats stats{};
  ASSERT_EQ(rte_dma_stats_get(a_.id(), RTE_DMA_ALL_VCHAN, &stats), 0);
  EXPECT_EQ(stats.submitted, 6u);
  EXPECT_EQ(stats.completed, 6u);
  EXPECT_EQ(stats.errors, 4u);
  ASSERT_EQ(rte_dma_stats_reset(a_.id(), 0), 0);
  ASSERT_EQ(rte_dma_stats_get(a_.id(), 0, &stats), 0);
  EXPECT_EQ(stats.submitted + stats.completed + stats.errors, 0u);
}

TEST_F(DmaPair, WhoIsFullSaysSo) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(rte_dma_burst_capacity(a_.id(), 0), 64 - i);
    ASSERT_EQ(a_.copy(iova(ours_.va), there(), 1 << 20, 0), i);
  }
  EXPECT_EQ(rte_dma_burst_capacity(a_.id(), 0), 0);
  EXPECT_EQ(a_.copy(iova(ours_.va), there(), 64, 0), -ENOSPC);
  enum rte_dma_vchan_status state {};
  ASSERT_EQ(rte_dma_submit(a_.id(), 0), 0);
  ASSERT_EQ(rte_dma_vchan_status(a_.id(), 0, &state), 0);
  EXPECT_EQ(state, RTE_DMA_VCHAN_ACTIVE);
  EXPECT_EQ(a_.statuses(64, &b_).size(), 64u);
  ASSERT_EQ(rte_dma_vchan_status(a_.id(), 0, &state), 0);
  EXPECT_EQ(state, RTE_DMA_VCHAN_IDLE);
}

TEST_F(DmaPair, WhatIsUnderWayAtTheStopFails) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  for (int i = 0; i < 64; ++i) {  // more requests than the ring has room for
    ASSERT_EQ(a_.copy(iova(ours_.va), there(), kBytes), i);
  }
  a_.stop();
  const auto all = a_.statuses(64);
  ASSERT_EQ(all.size(), 64u);
  EXPECT_EQ(all[63], RTE_DMA_STATUS_USER_ABORT);
  ASSERT_EQ(rte_dma_start(a_.id()), 0);
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), 64), 64);
  EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_SUCCESSFUL);
}

TEST_F(DmaPair, ANodeThatDoesNotAnswerIsALinkError) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), 64), 0);
  EXPECT_EQ(a_.status(), RTE_DMA_STATUS_DEV_LINK_ERROR);
}

TEST_F(DmaPair, ANodeThatIsNoneRefuses) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  a_.stop();
  ASSERT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 0x7777), 0);
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), 64), 0);
  EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_INVALID_ADDR);
}

TEST_F(DmaPair, StreamingWritesAreOfDoublewords) {
  begin(RTE_DMA_DIR_MEM_TO_DEV, RTE_DMA_RIO_SWRITE);
  EXPECT_EQ(a_.copy(iova(ours_.va), there(), 12), -EINVAL);
  EXPECT_EQ(a_.copy(iova(ours_.va + 4), there(), 16), -EINVAL);
  EXPECT_EQ(a_.copy(iova(ours_.va), there(4), 16), -EINVAL);
  rte_dma_sge from = {iova(ours_.va), 12};
  rte_dma_sge to = {there(), 12};
  EXPECT_EQ(rte_dma_copy_sg(a_.id(), 0, &from, &to, 1, 1, 0), -EINVAL);
  EXPECT_EQ(a_.copy(iova(ours_.va), there(), 16), 0);
  EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_SUCCESSFUL);
}

TEST_F(DmaPair, BadChannelsAreRefused) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  a_.stop();
  EXPECT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_MEM), -EINVAL) << "a wire of two does not lead back";
  LogCapture log;
  a_.spoil = 7;
  EXPECT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 1), -EINVAL);
  EXPECT_NE(log.text().find("rte_dma_rio.h"), std::string::npos);
  a_.spoil = 3 << 8;
  EXPECT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 1), -EINVAL);
  EXPECT_NE(log.text().find("0 to 2"), std::string::npos);
  a_.spoil = 0;
  EXPECT_EQ(rte_dma_start(a_.id()), -EINVAL) << "no channel";
  ASSERT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 1), 0);
}

// raw_rio0 and dma_rio2 have a queue pair each of one card.
TEST(DmaShared, TwoClassesOnOneCard) {
  const uint16_t raw = rte_rawdev_get_dev_id("raw_rio0");
  Node dma("dma_rio2");
  ASSERT_GE(dma.id(), 0);
  LogCapture log;
  EXPECT_EQ(rte_rawdev_queue_setup(raw, 1, nullptr, 0), -EBUSY);
  EXPECT_NE(log.text().find("belongs to dma_rio2"), std::string::npos) << log.text();
  ASSERT_EQ(rte_rawdev_queue_setup(raw, 0, nullptr, 0), 0);
  ASSERT_EQ(rte_rawdev_start(raw), 0);
  ASSERT_EQ(dma.start(RTE_DMA_DIR_MEM_TO_MEM), 0);
  Memory memory(8192);
  std::memset(memory.va, 0xA5, 4096);
  ASSERT_EQ(dma.copy(iova(memory.va), iova(memory.va + 4096), 4096), 0);
  EXPECT_EQ(dma.status(), RTE_DMA_STATUS_SUCCESSFUL);
  EXPECT_EQ(std::memcmp(memory.va, memory.va + 4096, 4096), 0);
  dma.stop();
  EXPECT_EQ(rte_rawdev_reset(raw), 0) << "of a card whose DMA device is stopped";
  ASSERT_EQ(rte_dma_start(dma.id()), 0);
  ASSERT_EQ(dma.copy(iova(memory.va), iova(memory.va + 4096), 4096), 1);
  EXPECT_EQ(dma.status(), RTE_DMA_STATUS_SUCCESSFUL);
  // What has ended before the stop is told after it.
  std::memset(memory.va + 4096, 0, 4096);
  ASSERT_EQ(dma.copy(iova(memory.va), iova(memory.va + 4096), 4096), 2);
  dma.stop();
  EXPECT_EQ(dma.status(), RTE_DMA_STATUS_SUCCESSFUL);
  EXPECT_EQ(std::memcmp(memory.va, memory.va + 4096, 4096), 0);
  // Its queue pair is free again once it is unplugged.
  ASSERT_EQ(rte_vdev_uninit("dma_rio2"), 0);
  ASSERT_EQ(rte_vdev_init("dma_rio2", "card=raw_rio0,qp=1"), 0) << log.text();
  dma = Node("dma_rio2");
  ASSERT_EQ(dma.start(RTE_DMA_DIR_MEM_TO_MEM), 0);
  // The card stays as long as somebody has it.
  rte_rawdev_stop(raw);
  ASSERT_EQ(rte_vdev_uninit("raw_rio0"), 0);
  ASSERT_EQ(dma.copy(iova(memory.va), iova(memory.va + 4096), 4096), 0);
  EXPECT_EQ(dma.status(), RTE_DMA_STATUS_SUCCESSFUL);
  ASSERT_EQ(rte_vdev_uninit("dma_rio2"), 0);
}

/// Copies to a window of its own, from a thread of its own, and looks at each that has ended.
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
        break;  // something was never told
      }
    }
    left = begun - told;
  }

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> good{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> wrong{0};  // index, status, or bytes
  uint32_t left = 0;               // that were never told of
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

/// dma_rio4 on a card of raw_rio3, which hears itself.
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

TEST_F(DmaReset, InTheMiddleOfAStreamOfWrites) {
  constexpr int kResets = 30;
  Stream stream(node_, kThere);
  open(stream.to, size_t{Stream::kSlots} * Stream::kCopyBytes);
  std::thread poller([&] { stream.run(); });
  int resets = 0;
  for (; resets < kResets && grows(stream.good, 100); ++resets) {
    EXPECT_EQ(rte_rawdev_reset(raw_), 0);
  }
  EXPECT_TRUE(grows(stream.good, 100)) << "after the last one";
  stream.stop = true;
  poller.join();
  EXPECT_EQ(resets, kResets);
  EXPECT_EQ(stream.wrong, 0u);
  EXPECT_EQ(stream.left, 0u) << "each is told of";
  rte_dma_stats stats{};
  ASSERT_EQ(rte_dma_stats_get(node_.id(), 0, &stats), 0);
  EXPECT_EQ(stats.completed, stream.good + stream.failed) << "once";
  EXPECT_EQ(stats.submitted, stats.completed);
  EXPECT_EQ(stats.errors, stream.failed);
}

TEST_F(DmaReset, WhatIsUnderWayFailsAndWhatWaitsGoesOn) {
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
  ASSERT_EQ(rte_dma_rio_window_close(node_.id(), a), 0);  // a hole before b
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
  LogCapture log;
  EXPECT_EQ(rte_dma_rio_window_close(node_.id(), 0), -ENOENT) << "the device's own";
}

TEST(DmaShared, BadArguments) {
  LogCapture log;
  EXPECT_NE(rte_vdev_init("dma_rio7", "card=nobody"), 0);
  EXPECT_NE(log.text().find("no card 'nobody' in this process: there are dma_rio0"),
            std::string::npos)
      << log.text();
  EXPECT_NE(rte_vdev_init("dma_rio7", "card=dma_rio0,qps=3"), 0);
  EXPECT_NE(log.text().find("give it to dma_rio0"), std::string::npos);
  EXPECT_NE(rte_vdev_init("dma_rio7", "card=dma_rio0,qp=x"), 0);
  EXPECT_NE(log.text().find("'qp'"), std::string::npos);
  EXPECT_NE(rte_vdev_init("dma_rio7", "card=dma_rio0,qp=0"), 0);
  EXPECT_NE(log.text().find("belongs to dma_rio0"), std::string::npos) << log.text();
  EXPECT_NE(rte_vdev_init("dma_rio7", "card=dma_rio0,qp=1,qp=1"), 0);
  EXPECT_NE(log.text().find("'qp' is given twice"), std::string::npos) << log.text();
  EXPECT_NE(rte_vdev_init("dma_rio7", "qp=9"), 0);
  EXPECT_EQ(rte_dma_get_dev_id_by_name("dma_rio7"), -EINVAL);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "dma",
      {"-d", "librte_raw_rio.so", "--vdev=dma_rio0,wire=pair", "--vdev=dma_rio1,wire=pair",
       "--vdev=raw_rio0,qps=2", "--vdev=dma_rio2,card=raw_rio0,qp=1", "--no-telemetry"});
}
