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
  template <class Item>
  static int put(uint16_t dev, rte_raw_rio_ring ring, Item item) {
    rte_rawdev_buf place{.buf_addr = &item};
    rte_rawdev_buf* places[] = {&place};
    rte_raw_rio_context context = {.queue_pair = 0, .ring = static_cast<uint16_t>(ring)};
    return rte_rawdev_enqueue_buffers(dev, places, 1, &context);
  }
  static int load(uint16_t dev, const rte_raw_rio_barrier_desc& desc, uint32_t slot) {
    return put(dev, RTE_RAW_RIO_BARRIER_LOAD,
               rte_raw_rio_barrier_load{.desc = &desc, .cookie = ~7ull, .slot = slot});
  }
  static int go(uint16_t dev, uint32_t slot, uint32_t epoch) {
    return put(dev, RTE_RAW_RIO_BARRIER_GO, rte_raw_rio_barrier_go{.slot = slot, .epoch = epoch});
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

TEST_F(RawBarrier, RunsFromASlotThatIsLoadedOnce) {
  const uint32_t last = info_of(devices_[0]).barrier_slots - 1;
  EXPECT_EQ(last, 15u);
  ASSERT_EQ(load(devices_[0], exchange_with(devices_[1]), last), 1);
  ASSERT_EQ(load(devices_[1], exchange_with(devices_[0]), 3), 1);
  const uint64_t writes = count(devices_[0], "qp0_barrier_bar_writes");
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) {
    ASSERT_EQ(go(devices_[0], last, epoch), 1);
    EXPECT_EQ(go(devices_[0], last, epoch + 1), 0) << "it runs";
    rte_raw_rio_barrier_done done[2] = {};
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(reap(devices_[0], &done[0]), 0) << "the other one has not arrived";
    }
    ASSERT_EQ(go(devices_[1], 3, epoch), 1);
    ASSERT_TRUE(reap_both(done));
    EXPECT_EQ(done[0].slot, last);
    EXPECT_EQ(done[1].slot, 3);
    for (const rte_raw_rio_barrier_done& one : done) {
      EXPECT_EQ(one.status, RTE_RAW_RIO_OK);
      EXPECT_EQ(one.cookie, ~7ull);
      EXPECT_EQ(one.epoch, epoch);
    }
  }
  EXPECT_EQ(count(devices_[0], "qp0_barrier_bar_writes"), writes + 20);
  EXPECT_EQ(count(devices_[0], "qp0_barrier_messages"), 20u);
}

TEST_F(RawBarrier, RefusesSlotsThatAreNotThere) {
  LogCapture log;
  const uint32_t slots = info_of(devices_[0]).barrier_slots;
  const rte_raw_rio_barrier_desc desc = exchange_with(devices_[1]);
  EXPECT_EQ(go(devices_[0], 0, 1), 0) << "nothing is loaded";
  EXPECT_EQ(go(devices_[0], slots, 1), 0);
  EXPECT_EQ(load(devices_[0], desc, slots), 0);
  EXPECT_NE(log.text().find("barrier slot 16; the card has 16"), std::string::npos) << log.text();
  ASSERT_EQ(load(devices_[0], desc, 0), 1);
  ASSERT_EQ(go(devices_[0], 0, 1), 1);
  EXPECT_EQ(load(devices_[0], desc, 0), 0);
  EXPECT_NE(log.text().find("barrier slot 0 runs"), std::string::npos) << log.text();
  rte_raw_rio_barrier_done done{};
  rte_rawdev_buf place{.buf_addr = &done};
  rte_rawdev_buf* places[] = {&place};
  for (const uint16_t ring : {RTE_RAW_RIO_BARRIER_LOAD, RTE_RAW_RIO_BARRIER_GO}) {
    rte_raw_rio_context context = {.queue_pair = 0, .ring = ring};
    EXPECT_EQ(rte_rawdev_dequeue_buffers(devices_[0], places, 1, &context), -EINVAL);
  }
  rte_rawdev_stop(devices_[0]);
  ASSERT_EQ(rte_rawdev_start(devices_[0]), 0);
  EXPECT_EQ(go(devices_[0], 0, 2), 0) << "a stop empties the slots";
}

TEST_F(RawBarrier, HasNoSlotsWithoutItsRing) {
  rte_rawdev_stop(devices_[0]);
  rte_raw_rio_queue_conf conf{};
  ASSERT_EQ(rte_rawdev_queue_conf_get(devices_[0], 0, &conf, sizeof(conf)), 0);
  conf.barrier_log2 = 0;
  ASSERT_EQ(rte_rawdev_queue_setup(devices_[0], 0, &conf, sizeof(conf)), 0);
  ASSERT_EQ(rte_rawdev_start(devices_[0]), 0);
  EXPECT_EQ(load(devices_[0], exchange_with(devices_[1]), 0), -EINVAL);
  EXPECT_EQ(go(devices_[0], 0, 1), -EINVAL);
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
