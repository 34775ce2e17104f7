// Devices lost in a reset of their card, for lack of memory for their queues.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>

#include <unistd.h>

#include <atomic>
#include <memory>
#include <vector>

#include "pmd/dma/rte_dma_rio.h"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_port.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kLooks = 1'000'000;  // the longest wait

/// Takes all of EAL's memory, while it lives.
class AllMemory {
 public:
  AllMemory() {
    for (size_t bytes = size_t{64} << 20; bytes >= 64; bytes /= 2) {
      while (void* const more = rte_malloc("all", bytes, 0)) {
        held_.push_back(more);
      }
    }
  }
  ~AllMemory() {
    for (void* const memory : held_) {
      rte_free(memory);
    }
  }
  AllMemory(const AllMemory&) = delete;
  AllMemory& operator=(const AllMemory&) = delete;

 private:
  std::vector<void*> held_;
};

/// A device on the card that hears of a reset: it stops, and takes the memory that the others have
/// freed.
class Taker {
 public:
  Taker() {
    EXPECT_EQ(rte_eth_dev_callback_register(port_.id(), RTE_ETH_EVENT_ERR_RECOVERING, take, this),
              0);
  }
  ~Taker() {
    EXPECT_EQ(rte_eth_dev_callback_unregister(port_.id(), RTE_ETH_EVENT_ERR_RECOVERING, take, this),
              0);
  }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;
  void give_back() { taken_.reset(); }

 private:
  static int take(uint16_t, rte_eth_event_type, void* self, void*) {
    auto& taker = *static_cast<Taker*>(self);
    taker.port_.stop();
    taker.taken_ = std::make_unique<AllMemory>();
    return 0;
  }
  Pool pool_{2048, 511};
  Device device_{"net_rio0", "card=raw_rio0,qp=2"};
  Port port_{"net_rio0", pool_, {.mtu = 1500}};
  std::unique_ptr<AllMemory> taken_;
};

class DmaLost : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(rte_vdev_init("raw_rio0", "qps=3"), 0);
    ASSERT_EQ(rte_vdev_init("dma_rio0", "card=raw_rio0,qp=1"), 0);
    raw_ = rte_rawdev_get_dev_id("raw_rio0");
    id_ = static_cast<int16_t>(rte_dma_get_dev_id_by_name("dma_rio0"));
    rte_dma_conf conf{};
    conf.nb_vchans = 1;
    ASSERT_EQ(rte_dma_configure(id_, &conf), 0);
    ASSERT_EQ(set_up(), 0);
    ASSERT_EQ(rte_dma_start(id_), 0);
  }
  void TearDown() override {
    EXPECT_EQ(rte_dma_stop(id_), 0);
    EXPECT_EQ(rte_vdev_uninit("dma_rio0"), 0);
    EXPECT_EQ(rte_vdev_uninit("raw_rio0"), 0);
    rte_free(memory_);
  }
  [[nodiscard]] int set_up() const {
    rte_dma_vchan_conf channel{};
    channel.direction = RTE_DMA_DIR_MEM_TO_MEM;
    channel.nb_desc = 64;
    return rte_dma_vchan_setup(id_, 0, &channel);
  }
  [[nodiscard]] int copy(uint64_t flags = RTE_DMA_OP_FLAG_SUBMIT) const {
    const rte_iova_t at = rte_mem_virt2iova(memory_);
    return rte_dma_copy(id_, 0, at, at + 64, 64, flags);
  }
  /// Status of an operation, which must end.
  [[nodiscard]] rte_dma_status_code status() const {
    rte_dma_status_code one = RTE_DMA_STATUS_NOT_ATTEMPTED;
    uint16_t n = 0;
    for (uint32_t look = 0; look < kLooks && n == 0; ++look) {
      n = rte_dma_completed_status(id_, 0, 1, nullptr, &one);
    }
    EXPECT_EQ(n, 1) << "the operation never ends";
    return one;
  }
  [[nodiscard]] enum rte_dma_vchan_status state() const {
    enum rte_dma_vchan_status state = RTE_DMA_VCHAN_IDLE;
    EXPECT_EQ(rte_dma_vchan_status(id_, 0, &state), 0);
    return state;
  }

  void* memory_ = rte_zmalloc("dma", 4096, 64);
  uint16_t raw_ = 0;
  int16_t id_ = 0;
};

TEST_F(DmaLost, OperationsFailUntilItIsStartedAgain) {
  ASSERT_GE(copy(), 0);
  ASSERT_EQ(status(), RTE_DMA_STATUS_SUCCESSFUL);
  {
    Taker taker;
    LogCapture log;
    ASSERT_NE(rte_rawdev_reset(raw_), 0);
    EXPECT_NE(log.text().find("dma_rio0: not open again"), std::string::npos) << log.text();
    taker.give_back();
  }
  EXPECT_EQ(state(), RTE_DMA_VCHAN_HALTED_ERROR);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_GE(copy(), 0);
    EXPECT_EQ(status(), RTE_DMA_STATUS_DEV_LINK_ERROR);
  }
  ASSERT_GE(copy(0), 0);
  ASSERT_EQ(rte_dma_submit(id_, 0), 0);
  EXPECT_EQ(status(), RTE_DMA_STATUS_DEV_LINK_ERROR);
  EXPECT_EQ(state(), RTE_DMA_VCHAN_HALTED_ERROR);
  ASSERT_EQ(rte_dma_stop(id_), 0);
  ASSERT_EQ(set_up(), 0);
  ASSERT_EQ(rte_dma_start(id_), 0);
  ASSERT_GE(copy(), 0);
  EXPECT_EQ(status(), RTE_DMA_STATUS_SUCCESSFUL);
}

/// Counts events of a port.
int count(uint16_t, rte_eth_event_type, void* seen, void*) {
  ++*static_cast<std::atomic<uint32_t>*>(seen);
  return 0;
}

/// Waits for an event. EAL's thread may take long: half a minute at most.
bool comes(const std::atomic<uint32_t>& seen) {
  for (uint32_t i = 0; i < 3000 && seen == 0; ++i) {
    usleep(10'000);
  }
  return seen != 0;
}

TEST(NetLost, ReportsThatTheCardDoesNotComeBackAndThatItDoes) {
  constexpr rte_eth_event_type kTypes[] = {RTE_ETH_EVENT_RECOVERY_FAILED,
                                           RTE_ETH_EVENT_RECOVERY_SUCCESS};
  const Pool pool{2048, 511};
  const Device raw{"raw_rio0", "qps=3"};
  const Device net{"net_rio1", "card=raw_rio0,qp=1"};
  Port port{"net_rio1", pool, {.mtu = 1500}};
  std::atomic<uint32_t> seen[2] = {0, 0};
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(rte_eth_dev_callback_register(port.id(), kTypes[i], count, &seen[i]), 0);
  }
  {
    Taker taker;
    LogCapture log;
    ASSERT_NE(rte_rawdev_reset(rte_rawdev_get_dev_id("raw_rio0")), 0);
    EXPECT_TRUE(comes(seen[0])) << "whichever device asked for the reset";
    EXPECT_EQ(seen[1], 0u);
    EXPECT_NE(log.text().find("net_rio1: the card does not come back"), std::string::npos);
    taker.give_back();
    EXPECT_TRUE(comes(seen[1]));
    EXPECT_EQ(seen[0], 1u);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(rte_eth_dev_callback_unregister(port.id(), kTypes[i], count, &seen[i]), 0);
  }
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(argc, argv, "lost",
                                     {"-d", "librte_raw_rio.so", "-d", "librte_dma_rio.so", "-d",
                                      "librte_net_rio.so", "--no-telemetry"});
}
