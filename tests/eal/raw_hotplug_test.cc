// Cards that come and go, bad arguments through EAL, and telemetry.

#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_rawdev.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "pmd/raw/raw_rio.hpp"
#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"

namespace rio::test {
namespace {

uint16_t id_of(const char* name) {
  return rte_rawdev_get_dev_id(name);
}

TEST(RawHotplug, PlugsAndUnplugs) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio3", "qps=3"), 0);
    const uint16_t id = id_of("raw_rio3");
    ASSERT_LT(id, RTE_RAWDEV_MAX_DEVS);
    EXPECT_EQ(rte_rawdev_queue_count(id), 3);
    ASSERT_EQ(rte_rawdev_queue_setup(id, 2, nullptr, 0), 0);
    ASSERT_EQ(rte_rawdev_start(id), 0);  // unplugged while it runs
    ASSERT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio3"), 0);
    EXPECT_EQ(pmd::raw_card(id), nullptr);
    EXPECT_EQ(rte_rawdev_count(), 0);
  }
}

TEST(RawHotplug, WhatIsHeldIsNotUnplugged) {
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio3", ""), 0);
  const uint16_t id = id_of("raw_rio3");
  ASSERT_EQ(pmd::raw_hold(id), 0);
  ASSERT_EQ(pmd::raw_hold(id), 0);
  pmd::raw_let_go(id);
  {
    LogCapture log;
    EXPECT_NE(rte_eal_hotplug_remove("vdev", "raw_rio3"), 0);
    EXPECT_NE(log.text().find("raw_rio3: cannot be unplugged"), std::string::npos) << log.text();
  }
  EXPECT_NE(pmd::raw_card(id), nullptr);
  pmd::raw_let_go(id);
  pmd::raw_let_go(id);  // once too often
  EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio3"), 0);
  EXPECT_EQ(pmd::raw_hold(id), -ENODEV);
}

TEST(RawHotplug, ClosesOnceAndForAll) {
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio3", ""), 0);
  const uint16_t id = id_of("raw_rio3");
  EXPECT_EQ(rte_rawdev_close(id), 0);
  EXPECT_EQ(rte_rawdev_close(id), 0);
  EXPECT_EQ(rte_rawdev_start(id), -ENODEV);
  EXPECT_EQ(rte_rawdev_queue_setup(id, 0, nullptr, 0), -ENODEV);
  EXPECT_EQ(rte_rawdev_selftest(id), -ENODEV);
  EXPECT_EQ(rte_rawdev_enqueue_buffers(id, nullptr, 0, nullptr), -ENODEV);
  EXPECT_EQ(rte_rawdev_xstats_names_get(id, nullptr, 0), -ENODEV);
  EXPECT_EQ(rte_rawdev_dump(id, stderr), -ENODEV);
  EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio3"), 0);
}

TEST(RawHotplug, RefusesTheThirdEndOfAWire) {
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio0", "wire=w"), 0);
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio1", "wire=w"), 0);
  {
    LogCapture log;
    EXPECT_NE(rte_eal_hotplug_add("vdev", "raw_rio2", "wire=w"), 0);
    EXPECT_NE(log.text().find("wire 'w' has two ends"), std::string::npos) << log.text();
  }
  EXPECT_EQ(rte_rawdev_selftest(id_of("raw_rio0")), 0);
  EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio1"), 0);
  {
    LogCapture log;
    EXPECT_EQ(rte_rawdev_selftest(id_of("raw_rio0")), -ENOLINK);
    EXPECT_NE(log.text().find("nothing is at the other end of wire 'w'"), std::string::npos);
  }
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio1", "wire=w"), 0);
  EXPECT_EQ(rte_rawdev_selftest(id_of("raw_rio0")), 0) << "plugged in again";
  EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio0"), 0);
  EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio1"), 0);
}

struct Bad {
  const char* args;
  const char* told;
};

class RawBadArgs : public testing::TestWithParam<Bad> {};

TEST_P(RawBadArgs, FailTheProbe) {
  LogCapture log;
  EXPECT_NE(rte_eal_hotplug_add("vdev", "raw_rio5", GetParam().args), 0);
  EXPECT_NE(log.text().find(GetParam().told), std::string::npos) << log.text();
  EXPECT_EQ(rte_rawdev_count(), 0);
}

constexpr Bad kBad[] = {
    {"wire=a b", "bad value 'a b' for argument 'wire': allowed is loop, or a name"},
    {"qps=32", "bad value '32' for argument 'qps': allowed is 1 to 31"},
    {"stepping=often", "for argument 'stepping': allowed is inline or thread"},
    {"exact=", "for argument 'exact': allowed is 0 or 1"},
    {"quirks=2", "for argument 'quirks': allowed is 0 or 1"},
    {"faults=0.1", "for argument 'faults': allowed is SEED:RATE"},
    {"pcie=x", "for argument 'pcie': allowed is a 64-bit seed"},
    {"destid=70000", "for argument 'id': allowed is 0 to 65535 - qps, here 65533"},
    {"tx_ring=100", "for argument 'tx_ring': allowed is 2 to 65536 entries"},
    {"rx_ring=2", "for argument 'rx_ring': this card takes 8 to 32768 entries"},
    {"dma_ring=65536", "for argument 'dma_ring': this card takes 8 to 32768 entries"},
    {"response_timeout_us=0", "for argument 'response_timeout_us': allowed is 1 to 10000000"},
    {"retry_delay_us=9999999", "for argument 'retry_delay_us': allowed is 1 to 1000000"},
    {"speed=11", "no argument 'speed' for an emulated card: take one of tx_ring, rx_ring,"},
};

INSTANTIATE_TEST_SUITE_P(Each, RawBadArgs, testing::ValuesIn(kBad));

TEST(RawHotplug, RefusesNamesThatAreTooLong) {
  LogCapture log;
  EXPECT_NE(rte_eal_hotplug_add("vdev", "raw_rio_with_a_name_of_more_than_27_characters", ""), 0);
  EXPECT_NE(log.text().find("too long"), std::string::npos) << log.text();
  EXPECT_EQ(rte_rawdev_count(), 0);
}

TEST(RawHotplug, SaysWhenMemoryIsShort) {
  LogCapture log;
  // 31 queue pairs, rings as large as they can be: far more than the process has.
  if (rte_eal_hotplug_add("vdev", "raw_rio6",
                          "qps=31,tx_ring=32768,rx_ring=32768,doorbell_ring=32768,dma_ring=32768,"
                          "event_ring=32768") == 0) {
    const uint16_t id = id_of("raw_rio6");
    for (uint16_t qp = 0; qp < 31; ++qp) {
      ASSERT_EQ(rte_rawdev_queue_setup(id, qp, nullptr, 0), 0);
    }
    const int rc = rte_rawdev_start(id);
    EXPECT_EQ(rc == 0 ? -ENOMEM : rc, -ENOMEM);
    if (rc != 0) {
      EXPECT_NE(log.text().find("give EAL more memory"), std::string::npos) << log.text();
      EXPECT_EQ(pmd::raw_queue_pair(id, 0), nullptr) << "all or none";
    }
    EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio6"), 0);
  }
  EXPECT_EQ(rte_rawdev_count(), 0);
}

/// DPDK's telemetry: SOCK_SEQPACKET, a greeting, then an answer to each command.
class Telemetry {
 public:
  Telemetry() : fd_(socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/dpdk_telemetry.v2",
             rte_eal_get_runtime_dir());
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    if (connected_) {
      (void)receive();
    }
  }
  ~Telemetry() { close(fd_); }
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;
  [[nodiscard]] bool connected() const { return connected_; }
  std::string ask(const std::string& command) {
    return send(fd_, command.data(), command.size(), 0) < 0 ? "" : receive();
  }

 private:
  std::string receive() {
    std::string text(1 << 16, '\0');
    const ssize_t n = recv(fd_, text.data(), text.size(), 0);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }
  int fd_;
  bool connected_ = false;
};

TEST(RawTelemetry, Answers) {
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "raw_rio0", "qps=2,destid=0x500"), 0);
  const uint16_t id = id_of("raw_rio0");
  ASSERT_EQ(rte_rawdev_queue_setup(id, 1, nullptr, 0), 0);
  ASSERT_EQ(rte_rawdev_start(id), 0);
  Telemetry telemetry;
  ASSERT_TRUE(telemetry.connected()) << rte_eal_get_runtime_dir();
  const std::string n = std::to_string(id);
  EXPECT_EQ(telemetry.ask("/raw_rio/list"), "{\"/raw_rio/list\":[" + n + "]}");
  const std::string info = telemetry.ask("/raw_rio/info," + n);
  EXPECT_NE(info.find("\"dest_id\":1280"), std::string::npos) << info;
  EXPECT_NE(info.find("\"link_up\":1"), std::string::npos) << info;
  const std::string queues = telemetry.ask("/raw_rio/queues," + n);
  EXPECT_NE(queues.find("\"qp1\":{\"owner_pid\":" + std::to_string(getpid())), std::string::npos)
      << queues;
  EXPECT_NE(queues.find("\"tx\":\"running\""), std::string::npos) << queues;
  const std::string queue = telemetry.ask("/raw_rio/queue," + n + ",1");
  EXPECT_NE(queue.find("\"queue_pair\":1,\"owner_pid\":" + std::to_string(getpid())),
            std::string::npos)
      << queue;
  EXPECT_NE(queue.find("\"tx_entries\":512,\"tx_fill\":0"), std::string::npos) << queue;
  EXPECT_NE(queue.find("\"doorbell_entries\":0,\"doorbell_fill\":0"), std::string::npos) << queue;
  for (const char* const bad : {",2", ",", "", ",x", ",1x", ",-1", ",1,1"}) {
    EXPECT_EQ(telemetry.ask("/raw_rio/queue," + n + bad), "{\"/raw_rio/queue\":null}") << bad;
  }
  const std::string regs = telemetry.ask("/raw_rio/regs," + n);
  EXPECT_NE(regs.find("\"ID/MAGIC\":" + std::to_string(0x52494F43)), std::string::npos) << regs;
  const std::string xstats = telemetry.ask("/rawdev/xstats," + n);
  EXPECT_NE(xstats.find("\"qp1_tx_messages\":0"), std::string::npos) << xstats;
  const std::string dump = telemetry.ask("/rawdev/dump," + n);
  EXPECT_NE(dump.find("ID.HEARTBEAT"), std::string::npos) << dump;
  EXPECT_NE(dump.find("QP[1].event"), std::string::npos) << "cut: " << dump;
  EXPECT_EQ(telemetry.ask("/raw_rio/info,9"), "{\"/raw_rio/info\":null}");
  EXPECT_EQ(telemetry.ask("/raw_rio/info"), "{\"/raw_rio/info\":null}");
  EXPECT_EQ(telemetry.ask("/raw_rio/queues,x"), "{\"/raw_rio/queues\":null}");
  EXPECT_EQ(rte_eal_hotplug_remove("vdev", "raw_rio0"), 0);
  EXPECT_EQ(telemetry.ask("/raw_rio/list"), "{\"/raw_rio/list\":[]}");
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(argc, argv, "hotplug", {});
}
