// Receive interrupts of ports, as dpdk-l3fwd-power uses them: poll, ask for an interrupt, sleep.
#include <gtest/gtest.h>
#include <rte_interrupts.h>
#include <rte_rawdev.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_port.hpp"

namespace rio::test {
namespace {

constexpr int kLongestMs = 30'000;  // until a test fails

/// Adds the port's queue to the epoll descriptor of this thread, while it lives.
class Epoll {
 public:
  explicit Epoll(const Port& port) : port_(port) {
    EXPECT_EQ(
        rte_eth_dev_rx_intr_ctl_q(port.id(), 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, nullptr),
        0);
  }
  ~Epoll() {
    EXPECT_EQ(
        rte_eth_dev_rx_intr_ctl_q(port_.id(), 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, nullptr),
        0);
  }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;
  [[nodiscard]] int arm() const { return rte_eth_dev_rx_intr_enable(port_.id(), 0); }
  /// @return whether it was woken.
  [[nodiscard]] static bool sleep(int timeout_ms = kLongestMs) {
    rte_epoll_event event{};
    return rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, timeout_ms) == 1;
  }

 private:
  const Port& port_;
};

class NetIrq : public testing::Test {
 protected:
  void send(uint32_t count = 1) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_TRUE(pair_.a.send(pair_.a.make(frame_bytes(pair_.b.mac(), pair_.a.mac(), 100, i))));
    }
  }
  /// Polls until nothing comes. @return number of frames.
  uint32_t drain() {
    uint32_t frames = 0;
    while (rte_mbuf* const got = pair_.b.receive([] {}, kQuietTurns)) {
      rte_pktmbuf_free(got);
      ++frames;
    }
    return frames;
  }

  Pool pool_{2048};
  Pair pair_{"irq", pool_, {.mtu = 1500, .rx_irq = true}, "stepping=thread"};
};

TEST_F(NetIrq, WakesWithAFrameAndOnlyThen) {
  ASSERT_TRUE(pair_.meet());
  const Epoll epoll(pair_.b);
  drain();
  ASSERT_EQ(epoll.arm(), 0);
  while (Epoll::sleep(0)) {  // wakings from before
  }
  drain();
  ASSERT_EQ(epoll.arm(), 0);
  EXPECT_FALSE(Epoll::sleep(0)) << "nothing came";
  send();
  ASSERT_TRUE(Epoll::sleep());
  EXPECT_EQ(rte_eth_dev_rx_intr_disable(pair_.b.id(), 0), 0);
  EXPECT_EQ(drain(), 1u);
}

// dpdk-l3fwd-power asks anew each 10 ms, also while nothing comes.
TEST_F(NetIrq, MayBeAskedForAgainAndAgain) {
  ASSERT_TRUE(pair_.meet());
  const Epoll epoll(pair_.b);
  for (uint32_t round = 0; round < 20; ++round) {
    drain();
    while (Epoll::sleep(0)) {
    }
    for (uint32_t i = 0; i < 5; ++i) {
      ASSERT_EQ(epoll.arm(), 0);
      ASSERT_FALSE(Epoll::sleep(1));
      ASSERT_EQ(drain(), 0u);
    }
    ASSERT_EQ(epoll.arm(), 0);
    send();
    ASSERT_TRUE(Epoll::sleep()) << round;
  }
  EXPECT_EQ(drain(), 1u);
}

TEST_F(NetIrq, WakesAtOnceIfFramesAreThere) {
  ASSERT_TRUE(pair_.meet());
  const Epoll epoll(pair_.b);
  drain();
  while (Epoll::sleep(0)) {
  }
  send();
  for (uint32_t i = 0; i < kTurns && rte_eth_rx_queue_count(pair_.b.id(), 0) < 1; ++i) {
    pair_.a.work();
  }
  ASSERT_EQ(epoll.arm(), 0);
  ASSERT_TRUE(Epoll::sleep()) << "by the card";
  EXPECT_EQ(drain(), 1u);

  // Frames that the driver has taken from the card: the rest of a bundle.
  rte_mbuf* burst[8];
  for (rte_mbuf*& frame : burst) {
    frame = pair_.a.make(frame_bytes(pair_.b.mac(), pair_.a.mac(), 100));
  }
  ASSERT_EQ(rte_eth_tx_burst(pair_.a.id(), 0, burst, 8), 8);
  rte_mbuf* const first = pair_.b.receive([] {});
  ASSERT_NE(first, nullptr);
  rte_pktmbuf_free(first);
  while (Epoll::sleep(0)) {
  }
  ASSERT_EQ(epoll.arm(), 0);
  ASSERT_TRUE(Epoll::sleep()) << "by the driver";
  EXPECT_EQ(drain(), 7u);
}

// The receiver sleeps after each frame; the next one leaves when it has said that it got the last.
TEST_F(NetIrq, LosesNoWaking) {
  constexpr uint32_t kFrames = 2000;
  ASSERT_TRUE(pair_.meet());
  drain();
  std::atomic<uint32_t> got{0};
  std::atomic<bool> lost{false};
  std::thread receiver([&] {
    const Epoll epoll(pair_.b);
    while (got < kFrames && !lost) {
      rte_mbuf* frames[4];
      const uint16_t n = rte_eth_rx_burst(pair_.b.id(), 0, frames, 4);
      rte_pktmbuf_free_bulk(frames, n);
      got += n;
      if (n == 0) {
        EXPECT_EQ(epoll.arm(), 0);
        lost = !Epoll::sleep();
      }
    }
  });
  for (uint32_t i = 0; i < kFrames && !lost; ++i) {
    send();
    while (got <= i && !lost) {
      pair_.a.work();
      std::this_thread::yield();
    }
  }
  receiver.join();
  EXPECT_FALSE(lost) << "after " << got << " frames";
}

TEST(NetIrqReset, WakesTheSleeper) {
  const Pool pool(2048);
  const Device raw("raw_rio0", "wire=irq,destid=0x100,stepping=thread");
  const Device net("net_rio0", "card=raw_rio0");
  const Port port("net_rio0", pool, {.mtu = 1500, .rx_irq = true});
  const Epoll epoll(port);
  ASSERT_EQ(epoll.arm(), 0);
  while (Epoll::sleep(0)) {
  }
  ASSERT_EQ(rte_rawdev_reset(rte_rawdev_get_dev_id("raw_rio0")), 0);
  EXPECT_TRUE(Epoll::sleep()) << "the card has forgotten that it was asked";
  EXPECT_EQ(epoll.arm(), 0);
}

TEST(NetIrqSetUp, IsRefusedWhereItCannotWork) {
  const Pool pool(2048);
  const auto start = [&](const std::string& args, uint16_t rx_queues) {
    const Device net("net_rio0", args);
    uint16_t id = 0;
    EXPECT_EQ(rte_eth_dev_get_port_by_name("net_rio0", &id), 0);
    rte_eth_conf conf{};
    conf.intr_conf.rxq = 1;
    EXPECT_EQ(rte_eth_dev_configure(id, rx_queues, 1, &conf), 0);
    for (uint16_t i = 0; i < rx_queues; ++i) {
      EXPECT_EQ(rte_eth_rx_queue_setup(id, i, 64, -1, nullptr, pool.get()), 0);
    }
    EXPECT_EQ(rte_eth_tx_queue_setup(id, 0, 64, -1, nullptr), 0);
    LogCapture log;
    EXPECT_EQ(rte_eth_dev_start(id), -ENOTSUP);
    EXPECT_NE(rte_eth_dev_rx_intr_enable(id, 0), 0);
    return log.text();
  };
  EXPECT_NE(start("wire=irq", 1).find("stepping=thread"), std::string::npos);
  EXPECT_NE(start("wire=irq,stepping=thread", 2).find("configure one receive queue"),
            std::string::npos);
  const Device net("net_rio0", "wire=irq,stepping=thread");
  const Port port("net_rio0", pool, {.mtu = 1500});
  EXPECT_EQ(rte_eth_dev_rx_intr_enable(port.id(), 0), -ENOTSUP) << "not configured";
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net-irq",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
