// A port whose card is reset, whose wire fails, and whose card has other users.
#include <gtest/gtest.h>
#include <rte_malloc.h>
#include <rte_power_intrinsics.h>
#include <rte_rawdev.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/formatted.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/card/eal_card.hpp"
#include "pmd/dma/rte_dma_rio.h"
#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_port.hpp"

namespace rio::test {
namespace {

/// Attribute: the register that each reset changes.
const std::string kGen = "reg.0x" + base::formatted("%x", regs::id::gen_ack());

/// Waits for EAL's thread, which may take long: half a minute at most.
bool in_time(const std::function<bool()>& good) {
  for (uint32_t i = 0; i < 3000; ++i) {
    if (good()) {
      return true;
    }
    usleep(10'000);
  }
  return false;
}

/// Counts events of a port.
class Events {
 public:
  Events(uint16_t port, rte_eth_event_type type) : port_(port), type_(type) {
    EXPECT_EQ(rte_eth_dev_callback_register(port, type, count, this), 0);
  }
  ~Events() { EXPECT_EQ(rte_eth_dev_callback_unregister(port_, type_, count, this), 0); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  std::atomic<uint32_t> seen{0};

 private:
  static int count(uint16_t, rte_eth_event_type, void* self, void*) {
    ++static_cast<Events*>(self)->seen;
    return 0;
  }
  uint16_t port_;
  rte_eth_event_type type_;
};

bool goes(const Port& from, const Port& to, const Bytes& bytes) {
  const auto work = [&] {
    from.work();
    to.work();
  };
  return from.send_now(from.make(bytes), work) && take(to.receive(work)) == bytes;
}
/// Sends until a frame arrives: frames are lost until both ports know each other again.
bool goes_again(const Port& from, const Port& to) {
  const Bytes bytes = frame_bytes(to.mac(), from.mac(), 100, 9);
  const auto work = [&] {
    from.work();
    to.work();
  };
  for (uint32_t i = 0; i < 10'000; ++i) {
    static_cast<void>(from.send(from.make(bytes)));
    if (rte_mbuf* const got = to.receive(work, 1000); got != nullptr) {
      static_cast<void>(take(got));
      while (rte_mbuf* const more = to.receive(work, kQuietTurns)) {
        rte_pktmbuf_free(more);
      }
      return true;
    }
  }
  return false;
}

TEST(NetLink, GoesDownWithTheOtherCard) {
  const Pool pool(2048);
  const Device device("net_rio0", "wire=link");
  auto other = std::make_unique<Device>("net_rio1", "wire=link");
  const Port port("net_rio0", pool, {.mtu = 1500});
  Events events(port.id(), RTE_ETH_EVENT_INTR_LSC);
  const auto status = [&] {
    rte_eth_link link{};
    EXPECT_EQ(rte_eth_link_get_nowait(port.id(), &link), 0);
    return link.link_status;
  };
  ASSERT_EQ(status(), RTE_ETH_LINK_UP);
  other.reset();
  EXPECT_TRUE(in_time([&] { return events.seen == 1; })) << "without a call: the watch notices";
  EXPECT_EQ(status(), RTE_ETH_LINK_DOWN);
  other = std::make_unique<Device>("net_rio1", "wire=link");
  EXPECT_TRUE(in_time([&] { return events.seen == 2; }));
  EXPECT_EQ(status(), RTE_ETH_LINK_UP);
}

TEST(NetMonitor, WakesIfTheCardHasAThread) {
  const Pool pool(4096);
  Pair pair("monitor", pool, {}, "stepping=thread,response_timeout_us=5000000");
  ASSERT_TRUE(pair.meet());
  rte_power_monitor_cond condition{};
  ASSERT_EQ(rte_eth_get_monitor_addr(pair.b.id(), 0, &condition), 0);
  ASSERT_EQ(condition.size, 4);
  const auto look = [&] {
    const uint32_t value = __atomic_load_n(
        static_cast<volatile uint32_t*>(static_cast<volatile void*>(condition.addr)),
        __ATOMIC_ACQUIRE);
    return condition.fn(value, condition.opaque);
  };
  EXPECT_EQ(look(), 0) << "may sleep";
  ASSERT_TRUE(pair.a.send(pair.a.make(frame_bytes(pair.b.mac(), pair.a.mac(), 100))));
  EXPECT_TRUE(in_time([&] { return look() == -1; })) << "must not";
  EXPECT_EQ(take(pair.b.receive([] {})).size(), 100u);
}

class NetReset : public testing::Test {
 protected:
  void reset() { ASSERT_EQ(rte_rawdev_reset(rte_rawdev_get_dev_id("raw_rio0")), 0); }

  Pool pool_{2048, 4095};
  Device raw_{"raw_rio0", "wire=reset,destid=0x100,qps=3"};
  Device net_a_{"net_rio0", "card=raw_rio0"};
  Device net_b_{"net_rio1", "wire=reset,destid=0x200"};
  Port a_{"net_rio0", pool_, {.mtu = 9000, .scatter = true}};
  Port b_{"net_rio1", pool_, {.mtu = 9000, .scatter = true}};
};

TEST_F(NetReset, WorksOnAStoppedPort) {
  ASSERT_TRUE(goes_again(a_, b_));
  a_.stop();
  ASSERT_EQ(rte_eth_dev_reset(a_.id()), 0);
  a_.start();
  EXPECT_TRUE(goes_again(a_, b_));
  EXPECT_TRUE(goes_again(b_, a_));
}

TEST_F(NetReset, LeavesTheQueuePairsOfOtherDevicesAlone) {
  const uint16_t raw = rte_rawdev_get_dev_id("raw_rio0");
  ASSERT_TRUE(goes_again(a_, b_));
  ASSERT_EQ(rte_rawdev_queue_setup(raw, 1, nullptr, 0), 0);  // queue pair 0 is the port's
  ASSERT_EQ(rte_rawdev_start(raw), 0);
  const auto generation = [raw] {
    uint64_t word = 0;
    EXPECT_EQ(rte_rawdev_get_attr(raw, kGen.c_str(), &word), 0);
    return word;
  };
  const uint64_t before = generation();
  a_.stop();
  LogCapture log;
  ASSERT_EQ(rte_eth_dev_reset(a_.id()), 0);
  EXPECT_NE(
      log.text().find("net_rio0: reset alone: card raw_rio0 keeps running, since raw_rio0 has "
                      "queue pair 1"),
      std::string::npos)
      << log.text();
  EXPECT_EQ(generation(), before);
  a_.start();
  EXPECT_TRUE(goes_again(a_, b_));
  // No other device resets the card beside a raw device that may be in a burst.
  EXPECT_EQ(pmd::EalCard::find("raw_rio0")->reset(), -EBUSY);
  EXPECT_NE(log.text().find("raw_rio0: another device wants to reset the card"), std::string::npos);
  rte_rawdev_stop(raw);
  EXPECT_EQ(pmd::EalCard::find("raw_rio0")->reset(), 0);
  EXPECT_NE(generation(), before);
  EXPECT_TRUE(goes_again(a_, b_));
}

TEST_F(NetReset, WorksOnAPortThatIsNotPolled) {
  ASSERT_TRUE(goes_again(a_, b_));
  Events recovering(a_.id(), RTE_ETH_EVENT_ERR_RECOVERING);
  Events recovered(a_.id(), RTE_ETH_EVENT_RECOVERY_SUCCESS);
  for (uint32_t i = 0; i < 20; ++i) {  // some frames are under way
    ASSERT_TRUE(b_.send(b_.make(frame_bytes(a_.mac(), b_.mac(), 1500, i))));
    ASSERT_TRUE(a_.send(a_.make(frame_bytes(b_.mac(), a_.mac(), 1500, i))));
  }
  for (uint32_t i = 1; i <= 3; ++i) {
    reset();
    EXPECT_EQ(recovering.seen, i);
    EXPECT_EQ(recovered.seen, i);
    EXPECT_TRUE(goes_again(a_, b_));
    EXPECT_TRUE(goes_again(b_, a_));
    EXPECT_TRUE(goes(a_, b_, frame_bytes(b_.mac(), a_.mac(), 2000)));
  }
}

/// Sends and receives until it is told to end.
class Traffic {
 public:
  Traffic(const Port& from, const Port& to)
      : thread_([this, &from, &to] {
          for (uint32_t i = 0; !stop_; ++i) {
            static_cast<void>(
                from.send(from.make(frame_bytes(to.mac(), from.mac(), 60 + i * 37 % 1900, i))));
            rte_mbuf* got[8];
            const uint16_t n = rte_eth_rx_burst(from.id(), 0, got, 8);
            rte_pktmbuf_free_bulk(got, n);
            received += n;
          }
        }) {}
  ~Traffic() {
    stop_ = true;
    thread_.join();
  }
  std::atomic<uint64_t> received{0};

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_F(NetReset, WorksWhileTwoThreadsSendAndReceive) {
  Events recovering(a_.id(), RTE_ETH_EVENT_ERR_RECOVERING);
  Events recovered(a_.id(), RTE_ETH_EVENT_RECOVERY_SUCCESS);
  {
    const Traffic there(a_, b_);
    const Traffic back(b_, a_);
    for (uint32_t i = 1; i <= 5; ++i) {
      const uint64_t at_a = there.received;
      const uint64_t at_b = back.received;
      ASSERT_TRUE(in_time([&] {
        return there.received > at_a + 100 && back.received > at_b + 100;
      })) << "after "
          << i - 1 << " resets";
      reset();
      EXPECT_EQ(recovering.seen, i);
      EXPECT_EQ(recovered.seen, i);
    }
    const uint64_t at_a = there.received;
    const uint64_t at_b = back.received;
    EXPECT_TRUE(in_time([&] { return there.received > at_a + 100 && back.received > at_b + 100; }));
  }
  while (rte_mbuf* const got = a_.receive([&] { b_.work(); }, kQuietTurns)) {
    rte_pktmbuf_free(got);
  }
  while (rte_mbuf* const got = b_.receive([&] { a_.work(); }, kQuietTurns)) {
    rte_pktmbuf_free(got);
  }
  for (uint32_t i = 0; i < kTurns && !pool_.full(); ++i) {
    a_.work();
    b_.work();
  }
  EXPECT_TRUE(pool_.full()) << "no mbuf is lost";
}

/// All kinds of devices on one card; its port is flooded while the port's owner sleeps.
TEST(NetFlood, OtherDevicesOnTheCardContinue) {
  const Pool pool(2048);
  const Device raw("raw_rio0", "wire=flood,destid=0x100,qps=3");
  const Device net("net_rio0", "card=raw_rio0,qp=1,peers=0x200");
  const Device dma("dma_rio0", "card=raw_rio0,qp=2");
  const Device other("net_rio1", "wire=flood,destid=0x200,qps=2,peers=0x101");
  const Device target("dma_rio1", "card=net_rio1");
  Port asleep("net_rio0", pool, {.mtu = 1500});
  Port flood("net_rio1", pool, {.mtu = 1500});
  ASSERT_TRUE(goes_again(flood, asleep));
  for (uint32_t i = 0; i < kTurns && flood.xstat("rx_joins") == 0; ++i) {
    flood.work();
    asleep.work();
  }
  const int16_t from = static_cast<int16_t>(rte_dma_get_dev_id_by_name("dma_rio0"));
  const int16_t to = static_cast<int16_t>(rte_dma_get_dev_id_by_name("dma_rio1"));
  for (const int16_t id : {to, from}) {
    rte_dma_conf conf{};
    conf.nb_vchans = 1;
    ASSERT_EQ(rte_dma_configure(id, &conf), 0);
    rte_dma_vchan_conf channel{};
    channel.direction = id == to ? RTE_DMA_DIR_DEV_TO_MEM : RTE_DMA_DIR_MEM_TO_DEV;
    channel.nb_desc = 64;
    rte_dma_rio_port(id == to ? &channel.src_port : &channel.dst_port,
                     id == to ? 0x100 : rte_dma_rio_dest_id(to), RTE_DMA_RIO_NWRITE_R, 1);
    ASSERT_EQ(rte_dma_vchan_setup(id, 0, &channel), 0);
    ASSERT_EQ(rte_dma_start(id), 0);
  }
  auto* const memory = static_cast<uint8_t*>(rte_zmalloc("flood", 8192, 4096));
  const rte_iova_t iova = rte_mem_virt2iova(memory);
  const rte_dma_rio_window window = {.rio_addr = 0x10000,
                                     .iova = iova + 4096,
                                     .len = 4096,
                                     .source = 0,
                                     .source_mask = 0,
                                     .key = 7,
                                     .rights = RTE_DMA_RIO_WRITE,
                                     .reserved = {}};
  uint32_t index = 0;
  ASSERT_EQ(rte_dma_rio_window_open(to, &window, &index), 0);

  const Bytes all = frame_bytes(kEverybody, flood.mac(), 1000);
  const auto work = [&] {
    for (uint32_t i = 0; i < 4; ++i) {
      static_cast<void>(flood.send(flood.make(all)));
    }
    flood.work();
    rte_dma_completed(to, 0, 1, nullptr, nullptr);
  };
  {
    RawPeer peer("raw_rio0", 0x200, work, 1);
    uint32_t writes = 0;
    uint32_t messages = 0;
    for (uint32_t i = 0; i < 500; ++i) {
      memory[0] = static_cast<uint8_t>(i + 1);
      ASSERT_GE(
          rte_dma_copy(from, 0, iova, uint64_t{7} << 48 | 0x10000, 64, RTE_DMA_OP_FLAG_SUBMIT), 0);
      bool failed = false;
      uint16_t done = 0;
      for (uint32_t turn = 0; turn < kTurns && done == 0; ++turn) {
        done = rte_dma_completed(from, 0, 1, nullptr, &failed);
        work();
      }
      writes += done == 1 && !failed && memory[4096] == static_cast<uint8_t>(i + 1) ? 1 : 0;
      const Bytes frame = frame_bytes(flood.mac(), address(0x100), 64, i);
      ASSERT_EQ(peer.send(frame, 0), 0);
      messages += take(flood.receive(work)) == frame ? 1 : 0;
    }
    EXPECT_EQ(writes, 500u);
    EXPECT_EQ(messages, 500u);
    EXPECT_GE(rte_eth_rx_queue_count(asleep.id(), 0), 200) << "it was a flood";
  }
  uint32_t heard = 0;
  while (rte_mbuf* const got = asleep.receive([&] { flood.work(); }, kQuietTurns)) {
    rte_pktmbuf_free(got);
    ++heard;
  }
  EXPECT_GE(heard, 200u) << "frames that waited for it";
  EXPECT_TRUE(goes_again(flood, asleep));
  ASSERT_EQ(rte_dma_stop(from), 0);
  ASSERT_EQ(rte_dma_stop(to), 0);
  rte_free(memory);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(argc, argv, "net-reset",
                                     {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "-d",
                                      "librte_dma_rio.so", "--no-telemetry"});
}
