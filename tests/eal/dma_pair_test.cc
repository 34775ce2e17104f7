// DMA devices: copies to and from the memory of another node, through dmadev's functions alone; and
// devices of two classes on one card.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_dmadev.h>
#include <rte_rawdev.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "pmd/dma/rte_dma_rio.h"
#include "tests/eal/dma_node.hpp"
#include "tests/eal/eal_process.hpp"

namespace rio::test {
namespace {

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
  /// Opens b's memory, and gives a a channel to it or from it.
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

TEST_F(DmaPair, ListsMayHaveDifferentPlaces) {
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
  // Without a fence the small copy would overtake the large one, whose end it overwrites.
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), kBytes), 0);
  ASSERT_EQ(a_.copy(iova(ours_.va + 64), there(kBytes - 64), 64,
                    RTE_DMA_OP_FLAG_FENCE | RTE_DMA_OP_FLAG_SUBMIT),
            1);
  const auto all = a_.statuses(2, &b_);
  EXPECT_EQ(all, (std::vector{RTE_DMA_STATUS_SUCCESSFUL, RTE_DMA_STATUS_SUCCESSFUL}));
  EXPECT_EQ(std::memcmp(theirs_.va + kBytes - 64, ours_.va + 64, 64), 0);
  EXPECT_EQ(std::memcmp(theirs_.va, ours_.va, kBytes - 64), 0);
}

TEST_F(DmaPair, AForbiddenAccessFailsAlone) {
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

TEST_F(DmaPair, AFullChannelSaysSo) {
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

TEST_F(DmaPair, OperationsUnderWayFailAtTheStop) {
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

TEST_F(DmaPair, AMalformedPortIsRefused) {
  begin(RTE_DMA_DIR_MEM_TO_DEV);
  a_.stop();
  ASSERT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 0x7777), 0);
  ASSERT_EQ(a_.copy(iova(ours_.va), there(), 64), 0);
  EXPECT_EQ(a_.status(&b_), RTE_DMA_STATUS_INVALID_ADDR);
}

TEST_F(DmaPair, StreamingWritesTakeDoublewords) {
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
  EXPECT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_MEM), -EINVAL)
      << "a wire between two cards does not lead back";
  LogCapture log;
  a_.spoil = 7;
  EXPECT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 1), -EINVAL);
  EXPECT_NE(log.text().find("rte_dma_rio.h"), std::string::npos);
  a_.spoil = 3 << 8;
  EXPECT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 1), -EINVAL);
  EXPECT_NE(log.text().find("0 to 2"), std::string::npos);
  a_.spoil = 0;
  EXPECT_EQ(rte_dma_start(a_.id()), -EINVAL) << "no channel is set up";
  ASSERT_EQ(a_.start(RTE_DMA_DIR_MEM_TO_DEV, 1), 0);
}

// raw_rio0 and dma_rio2 each have a queue pair of one card.
TEST(DmaShared, TwoClassesShareACard) {
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
  EXPECT_EQ(rte_rawdev_reset(raw), 0) << "its DMA device is stopped";
  ASSERT_EQ(rte_dma_start(dma.id()), 0);
  ASSERT_EQ(dma.copy(iova(memory.va), iova(memory.va + 4096), 4096), 1);
  EXPECT_EQ(dma.status(), RTE_DMA_STATUS_SUCCESSFUL);
  // Operations that ended before the stop are reported after it.
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
  // The card stays as long as a device uses it.
  rte_rawdev_stop(raw);
  ASSERT_EQ(rte_vdev_uninit("raw_rio0"), 0);
  ASSERT_EQ(dma.copy(iova(memory.va), iova(memory.va + 4096), 4096), 0);
  EXPECT_EQ(dma.status(), RTE_DMA_STATUS_SUCCESSFUL);
  ASSERT_EQ(rte_vdev_uninit("dma_rio2"), 0);
}

TEST(DmaShared, BadArgumentsAreRefused) {
  LogCapture log;
  EXPECT_NE(rte_vdev_init("dma_rio7", "card=missing"), 0);
  EXPECT_NE(log.text().find("no card 'missing' in this process: there are dma_rio0"),
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
