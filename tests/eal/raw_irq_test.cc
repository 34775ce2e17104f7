// Interrupts of raw devices, and errors if there are none.

#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_rawdev.h>

#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/raw_sleeper.hpp"

namespace rio::test {
namespace {

class RawIrq : public testing::Test {
 protected:
  void plug(const char* arguments) {
    ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio4", arguments), 0);
    dev_ = rte_rawdev_get_dev_id("raw_rio4");
    ASSERT_LT(dev_, RTE_RAWDEV_MAX_DEVS);
  }
  void TearDown() override { EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio4"), 0); }

  /// Starts the device. @return result of rte_rawdev_start().
  int start(uint32_t irq_rings, uint16_t moderation_us = 0) {
    rte_raw_rio_queue_conf conf{};
    EXPECT_EQ(rte_rawdev_queue_conf_get(dev_, 0, &conf, sizeof(conf)), 0);
    conf.irq_rings = irq_rings;
    conf.irq_moderation_us = moderation_us;
    EXPECT_EQ(rte_rawdev_queue_setup(dev_, 0, &conf, sizeof(conf)), 0);
    return rte_rawdev_start(dev_);
  }
  int irq_fd() {
    uint64_t fd = 0;
    return rte_rawdev_get_attr(dev_, "qp0.irq_fd", &fd);
  }

  uint16_t dev_ = RTE_RAWDEV_MAX_DEVS;
};

TEST_F(RawIrq, WakeASleepingThread) {
  plug("stepping=thread,qps=2");
  for (const uint16_t qp : {uint16_t{0}, uint16_t{1}}) {
    uint64_t interrupts = 0;
    EXPECT_EQ(sleep_and_receive(dev_, qp, 5, &interrupts), "");
    EXPECT_EQ(interrupts, 5u);
  }
}

TEST_F(RawIrq, ArePossibleOnlyIfTheCardHasAThread) {
  plug("");
  LogCapture log;
  EXPECT_EQ(start(1u << RTE_RAW_RIO_SHARED), -ENOTSUP);
  EXPECT_NE(log.text().find("stepping=thread"), std::string::npos) << log.text();
}

TEST_F(RawIrq, ArmOnlyRequestedRings) {
  plug("stepping=thread");
  EXPECT_EQ(irq_fd(), -ENODEV) << "not open";
  EXPECT_EQ(rte_rawdev_set_attr(dev_, "qp0.arm", 2), -ENODEV);
  EXPECT_EQ(start(1u << 16), -EINVAL);
  ASSERT_EQ(start(1u << RTE_RAW_RIO_SHARED | 1u << RTE_RAW_RIO_DEDICATED0, 9), 0);
  EXPECT_EQ(irq_fd(), 0);
  EXPECT_EQ(rte_rawdev_set_attr(dev_, "qp0.arm", 1u << RTE_RAW_RIO_SHARED), 0);
  LogCapture log;
  EXPECT_EQ(rte_rawdev_set_attr(dev_, "qp0.arm", 1u << RTE_RAW_RIO_TX), -EINVAL);
  EXPECT_EQ(rte_rawdev_set_attr(dev_, "qp0.arm", 1u << RTE_RAW_RIO_DEDICATED0), -EINVAL)
      << "not open";
  EXPECT_EQ(rte_rawdev_set_attr(dev_, "qp0.arm", 1ull << 33), -EINVAL);
  EXPECT_EQ(rte_rawdev_set_attr(dev_, "qp9.arm", 2), -EINVAL);
  EXPECT_NE(log.text().find("have no interrupts (those that have: 0x102)"), std::string::npos)
      << log.text();
  rte_rawdev_stop(dev_);
}

TEST_F(RawIrq, DoNotExistUnlessRequested) {
  plug("stepping=thread");
  ASSERT_EQ(start(0), 0);
  LogCapture log;
  EXPECT_EQ(irq_fd(), -ENOTSUP);
  EXPECT_NE(log.text().find("set irq_rings"), std::string::npos) << log.text();
  rte_rawdev_stop(dev_);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(argc, argv, "irq",
                                     {"-d", "librte_raw_rio.so", "--no-telemetry"});
}
