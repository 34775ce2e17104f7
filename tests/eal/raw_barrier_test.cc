// Barriers of two raw devices: posted and reaped by rawdev's functions, counted by name.

#include <gtest/gtest.h>
#include <rte_rawdev.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"

namespace rio::test {
namespace {

constexpr rte_raw_rio_context kBarriers = {.queue_pair = 0, .ring = RTE_RAW_RIO_BARRIER};

class RawBarrier : public testing::Test {
 protected:
  void SetUp() override {
    devices_ = {rte_rawdev_get_dev_id("raw_rio0"), rte_rawdev_get_dev_id("raw_rio1")};
    for (const uint16_t dev : devices_) {
      ASSERT_LT(dev, RTE_RAWDEV_MAX_DEVS);
      rte_raw_rio_queue_conf conf{};
      ASSERT_EQ(rte_rawdev_queue_conf_get(dev, 0, &conf, sizeof(conf)), 0);
      EXPECT_EQ(conf.barrier_log2, 0) << "no barrier ring by default";
      conf.barrier_log2 = 4;
      ASSERT_EQ(rte_rawdev_queue_setup(dev, 0, &conf, sizeof(conf)), 0);
      ASSERT_EQ(rte_rawdev_start(dev), 0);
    }
  }
  void TearDown() override {
    for (const uint16_t dev : devices_) {
      rte_rawdev_stop(dev);
      EXPECT_EQ(rte_rawdev_queue_release(dev, 0), 0);
    }
  }

  static rte_raw_rio_info info_of(uint16_t dev) {
    rte_raw_rio_info own{};
    rte_rawdev_info info{};
    info.dev_private = &own;
    EXPECT_EQ(rte_rawdev_info_get(dev, &info, sizeof(own)), 0);
    return own;
  }
  /// A schedule of one round, in which each card notifies the other one and awaits its
  /// notification.
  static rte_raw_rio_barrier_desc exchange_with(uint16_t peer) {
    rte_raw_rio_barrier_desc desc{};
    desc.control = 1 << 4;
    desc.group = 9;
    std::fill(std::begin(desc.peers), std::end(desc.peers), 0xFFFFFFFF);
    desc.peers[0] = info_of(peer).base_dest_id;
    desc.send = desc.await = 1;
    return desc;
  }
  static int post(uint16_t dev, const rte_raw_rio_barrier_desc& desc, uint32_t epoch) {
    rte_raw_rio_barrier barrier{.desc = &desc, .cookie = 70 + epoch, .epoch = epoch};
    rte_rawdev_buf place{.buf_addr = &barrier};
    rte_rawdev_buf* places[] = {&place};
    rte_raw_rio_context context = kBarriers;
    return rte_rawdev_enqueue_buffers(dev, places, 1, &context);
  }
  static int reap(uint16_t dev, rte_raw_rio_barrier_done* done) {
    rte_rawdev_buf place{.buf_addr = done};
    rte_rawdev_buf* places[] = {&place};
    rte_raw_rio_context context = kBarriers;
    return rte_rawdev_dequeue_buffers(dev, places, 1, &context);
  }
  /// Polls both cards until a barrier of each has ended. @return false: not within seconds.
  bool reap_both(rte_raw_rio_barrier_done (&done)[2]) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    bool ended[2] = {};
    while (!ended[0] || !ended[1]) {
      for (uint32_t i = 0; i < 2; ++i) {
        ended[i] = ended[i] || reap(devices_[i], &done[i]) == 1;
      }
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
    }
    return true;
  }
  static uint64_t count(uint16_t dev, const char* name) {
    unsigned id = 0;
    return rte_rawdev_xstats_by_name_get(dev, name, &id);
  }

  std::vector<uint16_t> devices_;
};

TEST_F(RawBarrier, EndsWhenBothHaveArrived) {
  EXPECT_EQ(info_of(devices_[0]).barrier_rounds, 20u);
  const rte_raw_rio_barrier_desc to_second = exchange_with(devices_[1]);
  const rte_raw_rio_barrier_desc to_first = exchange_with(devices_[0]);
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) {
    ASSERT_EQ(post(devices_[0], to_second, epoch), 1);
    rte_raw_rio_barrier_done done[2] = {};
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(reap(devices_[0], &done[0]), 0) << "the other one has not arrived";
    }
    ASSERT_EQ(post(devices_[1], to_first, epoch), 1);
    ASSERT_TRUE(reap_both(done));
    for (const rte_raw_rio_barrier_done& one : done) {
      EXPECT_EQ(one.status, RTE_RAW_RIO_OK);
      EXPECT_EQ(one.cookie, 70u + epoch);
      EXPECT_EQ(one.epoch, epoch);
      EXPECT_EQ(one.slot, 0xFF);
    }
  }
  for (const uint16_t dev : devices_) {
    rte_raw_rio_barrier_done none{};
    for (int i = 0; i < 100'000 && count(dev, "qp0_notices_received") != 20; ++i) {
      ASSERT_EQ(reap(dev, &none), 0);  // steps the card, which updates its counters now and then
    }
    EXPECT_EQ(count(dev, "qp0_barrier_messages"), 20u);
    EXPECT_EQ(count(dev, "qp0_barrier_bar_writes"), 20u);
    EXPECT_EQ(count(dev, "qp0_barrier_bar_reads"), 0u);
    EXPECT_EQ(count(dev, "qp0_notices_sent"), 20u);
    EXPECT_EQ(count(dev, "qp0_notices_received"), 20u);
    EXPECT_EQ(count(dev, "qp0_notices_foreign"), 0u);
    EXPECT_EQ(rte_rawdev_xstats_reset(dev, nullptr, 0), 0);
    EXPECT_EQ(count(dev, "qp0_notices_sent"), 0u);
  }
}

TEST_F(RawBarrier, RefusesABadDescriptor) {
  rte_raw_rio_barrier_desc desc = exchange_with(devices_[1]);
  desc.control = 21 << 4;
  EXPECT_EQ(post(devices_[0], desc, 1), 0) << "more rounds than the card has";
  desc.control = 2 << 4;  // the second round has no bit
  ASSERT_EQ(post(devices_[0], desc, 1), 1);
  rte_raw_rio_barrier_done done{};
  for (int i = 0; i < 100'000 && reap(devices_[0], &done) == 0; ++i) {
  }
  EXPECT_EQ(done.status, RTE_RAW_RIO_BAD_DESCRIPTOR);
}

TEST_F(RawBarrier, RefusesASizeThatTheCardDoesNotTake) {
  LogCapture log;
  rte_rawdev_stop(devices_[0]);
  rte_raw_rio_queue_conf conf{};
  ASSERT_EQ(rte_rawdev_queue_conf_get(devices_[0], 0, &conf, sizeof(conf)), 0);
  conf.barrier_log2 = 31;
  EXPECT_EQ(rte_rawdev_queue_setup(devices_[0], 0, &conf, sizeof(conf)), -EINVAL);
  EXPECT_NE(log.text().find("barrier_log2 is 31"), std::string::npos) << log.text();
  ASSERT_EQ(rte_rawdev_start(devices_[0]), 0);
}

TEST(RawWithoutBarriers, IsRefusedAtTheStart) {
  LogCapture log;
  const uint16_t dev = rte_rawdev_get_dev_id("raw_rio2");
  ASSERT_LT(dev, RTE_RAWDEV_MAX_DEVS);
  rte_raw_rio_queue_conf conf{};
  ASSERT_EQ(rte_rawdev_queue_conf_get(dev, 0, &conf, sizeof(conf)), 0);
  conf.barrier_log2 = 4;
  ASSERT_EQ(rte_rawdev_queue_setup(dev, 0, &conf, sizeof(conf)), 0);
  EXPECT_EQ(rte_rawdev_start(dev), -ENOTSUP);
  EXPECT_NE(log.text().find("no barrier engine"), std::string::npos) << log.text();
  EXPECT_EQ(rte_rawdev_queue_release(dev, 0), 0);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "barrier",
      {"-d", "librte_raw_rio.so", "--vdev=raw_rio0,wire=pair", "--vdev=raw_rio1,wire=pair",
       "--vdev=raw_rio2,wire=loop,barrier=0", "--no-telemetry"});
}
