// Two emulated cards wired to each other, through rawdev's functions and through the bursts.

#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <set>

#include "pmd/dev/queue_pair.hpp"
#include "pmd/raw/raw_rio.hpp"
#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"

namespace rio::test {
namespace {

using pmd::raw_card;
using pmd::raw_queue_pair;

constexpr uint32_t kBytes = 4096;

template <typename Done>
bool poll_until(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
  }
  return true;
}

class RawPair : public testing::Test {
 protected:
  void SetUp() override {
    a_ = rte_rawdev_get_dev_id("raw_rio0");
    b_ = rte_rawdev_get_dev_id("raw_rio1");
    ASSERT_LT(a_, RTE_RAWDEV_MAX_DEVS);
    ASSERT_LT(b_, RTE_RAWDEV_MAX_DEVS);
    for (const uint16_t dev : {a_, b_}) {
      ASSERT_EQ(rte_rawdev_queue_setup(dev, 0, nullptr, 0), 0);
      ASSERT_EQ(rte_rawdev_start(dev), 0);
    }
    b_dest_ = info_of(b_).base_dest_id;
    memory_ = static_cast<uint8_t*>(rte_zmalloc("test", 4 * kBytes, kBytes));
    ASSERT_NE(memory_, nullptr);
  }
  void TearDown() override {
    for (const uint16_t dev : {a_, b_}) {
      rte_rawdev_stop(dev);
      EXPECT_EQ(rte_rawdev_queue_release(dev, 0), 0);
    }
    rte_free(memory_);
  }

  static rte_raw_rio_info info_of(uint16_t dev) {
    rte_raw_rio_info own{};
    rte_rawdev_info info{};
    info.dev_private = &own;
    EXPECT_EQ(rte_rawdev_info_get(dev, &info, sizeof(own)), 0);
    return own;
  }
  /// An emulated card works only while it is polled, so poll both.
  void let_answer(uint16_t dev) const {
    pmd::CardEvent event{};
    (void)raw_queue_pair(dev, 0)->events().burst(&event, 1);
  }
  uint64_t iova(uint32_t page) const { return rte_malloc_virt2iova(memory_) + page * kBytes; }

  uint16_t a_ = 0;
  uint16_t b_ = 0;
  uint32_t b_dest_ = 0;
  uint8_t* memory_ = nullptr;
};

TEST_F(RawPair, DescribesItself) {
  const rte_raw_rio_info info = info_of(a_);
  EXPECT_EQ(info.queue_pairs, 2u);
  EXPECT_EQ(info.emulated, 1);
  EXPECT_EQ(info.link_up, 1);
  EXPECT_EQ(info.base_dest_id, 0x100u);
  EXPECT_EQ(rte_rawdev_queue_count(a_), 2);
  rte_rawdev_info generic{};
  ASSERT_EQ(rte_rawdev_info_get(a_, &generic, 0), 0);
  EXPECT_STREQ(generic.driver_name, "raw_rio");
}

TEST_F(RawPair, ExchangesMessagesByEnqueueAndDequeue) {
  rte_raw_rio_context shared{.queue_pair = 0, .ring = RTE_RAW_RIO_SHARED};
  rte_raw_rio_buffer buffer{.iova = iova(1), .cookie = 7};
  rte_rawdev_buf place{.buf_addr = &buffer};
  rte_rawdev_buf* places[] = {&place};
  ASSERT_EQ(rte_rawdev_enqueue_buffers(b_, places, 1, &shared), 1);

  std::memset(memory_, 0x5A, 100);
  rte_raw_rio_tx tx{};
  tx.iova = iova(0);
  tx.cookie = 42;
  tx.dest_id = b_dest_;
  tx.length_bytes = 100;
  tx.mbox = 2;
  place.buf_addr = &tx;
  ASSERT_EQ(rte_rawdev_enqueue_buffers(a_, places, 1, nullptr), 1);

  rte_raw_rio_message message{};
  rte_rawdev_buf in{.buf_addr = &message};
  rte_rawdev_buf* ins[] = {&in};
  ASSERT_TRUE(poll_until([&] { return rte_rawdev_dequeue_buffers(b_, ins, 1, nullptr) == 1; }));
  EXPECT_EQ(message.status, RTE_RAW_RIO_OK);
  EXPECT_EQ(message.cookie, 7u);
  EXPECT_EQ(message.length_bytes, 104);
  EXPECT_EQ(message.mbox, 2);
  EXPECT_EQ(message.source, 0x100u);
  EXPECT_EQ(std::memcmp(memory_, memory_ + kBytes, 100), 0);

  rte_raw_rio_context sent{.queue_pair = 0, .ring = RTE_RAW_RIO_TX};
  rte_raw_rio_tx_done done{};
  in.buf_addr = &done;
  ASSERT_TRUE(poll_until([&] {
    let_answer(b_);
    return rte_rawdev_dequeue_buffers(a_, ins, 1, &sent) == 1;
  }));
  EXPECT_EQ(done.cookie, 42u);
  EXPECT_EQ(done.status, RTE_RAW_RIO_OK);
}

TEST_F(RawPair, RefusesMissingRings) {
  rte_raw_rio_tx tx{};
  rte_rawdev_buf place{.buf_addr = &tx};
  rte_rawdev_buf* places[] = {&place};
  rte_raw_rio_context nothing{.queue_pair = 0, .ring = RTE_RAW_RIO_BARRIER};
  EXPECT_EQ(rte_rawdev_enqueue_buffers(a_, places, 1, &nothing), -EINVAL);
  rte_raw_rio_context closed{.queue_pair = 0, .ring = RTE_RAW_RIO_DEDICATED0};
  EXPECT_EQ(rte_rawdev_enqueue_buffers(a_, places, 1, &closed), -EINVAL);
  rte_raw_rio_context other{.queue_pair = 1, .ring = RTE_RAW_RIO_TX};
  EXPECT_EQ(rte_rawdev_enqueue_buffers(a_, places, 1, &other), -ENODEV);
  rte_raw_rio_context beyond{.queue_pair = 99, .ring = RTE_RAW_RIO_TX};
  EXPECT_EQ(rte_rawdev_dequeue_buffers(a_, places, 1, &beyond), -ENODEV);
}

TEST_F(RawPair, GivesAccessToTheBursts) {
  pmd::QueuePair* const from = raw_queue_pair(a_, 0);
  pmd::QueuePair* const to = raw_queue_pair(b_, 0);
  ASSERT_NE(from, nullptr);
  ASSERT_NE(to, nullptr);
  EXPECT_EQ(raw_queue_pair(a_, 1), nullptr);
  EXPECT_EQ(raw_queue_pair(RTE_RAWDEV_MAX_DEVS, 0), nullptr);
  EXPECT_NE(raw_card(a_), nullptr);

  const pmd::RxBuffer buffer{.iova = iova(1), .cookie = 1};
  ASSERT_EQ(to->shared().post(&buffer, 1), 1);
  const char text[] = "direct";
  const pmd::TxMessage message{.data = text,
                               .cookie = 2,
                               .dest_id = b_dest_,
                               .length_bytes = 8,
                               .mbox = 0,
                               .flags = pmd::TxFlags::kInline};
  ASSERT_EQ(from->tx().burst(&message, 1), 1);
  pmd::RxMessage got{};
  ASSERT_TRUE(poll_until([&] { return to->shared().burst(&got, 1) == 1; }));
  EXPECT_STREQ(reinterpret_cast<const char*>(memory_ + kBytes), "direct");
  pmd::TxDone done{};
  ASSERT_TRUE(poll_until([&] {
    let_answer(b_);
    return from->tx().reap(&done, 1) == 1;
  }));
  EXPECT_EQ(done.status, pmd::Status::kOk);
}

TEST_F(RawPair, HasNamedCounts) {
  const int count = rte_rawdev_xstats_names_get(a_, nullptr, 0);
  ASSERT_GT(count, 0);
  std::vector<rte_rawdev_xstats_name> names(static_cast<size_t>(count));
  ASSERT_EQ(rte_rawdev_xstats_names_get(a_, names.data(), static_cast<unsigned>(count)), count);
  std::set<std::string> different;
  for (const rte_rawdev_xstats_name& name : names) {
    different.insert(name.name);
  }
  EXPECT_EQ(different.size(), names.size());

  ASSERT_EQ(rte_rawdev_xstats_reset(a_, nullptr, 0), 0);
  unsigned id = 0;
  EXPECT_EQ(rte_rawdev_xstats_by_name_get(a_, "qp0_tx_messages", &id), 0u);
  ASSERT_LT(id, static_cast<unsigned>(count));
  const pmd::TxMessage doorbell{.info = 9,
                                .cookie = 0,
                                .dest_id = b_dest_,
                                .length_bytes = 0,
                                .mbox = 0,
                                .flags = pmd::TxFlags::kDoorbell};
  ASSERT_EQ(raw_queue_pair(a_, 0)->tx().burst(&doorbell, 1), 1);
  pmd::TxDone done{};
  pmd::DoorbellEvent event{};
  ASSERT_TRUE(poll_until([&] {
    (void)raw_queue_pair(b_, 0)->doorbells().burst(&event, 1);
    return raw_queue_pair(a_, 0)->tx().reap(&done, 1) == 1;
  }));
  uint64_t value = 0;
  ASSERT_EQ(rte_rawdev_xstats_get(a_, &id, &value, 1), 1);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(rte_rawdev_xstats_by_name_get(a_, "qp0_tx_bar_reads", nullptr), 0u);
  EXPECT_EQ(rte_rawdev_xstats_by_name_get(a_, "qp0_tx_bar_writes", nullptr), 1u);
  EXPECT_EQ(rte_rawdev_xstats_by_name_get(a_, "nonsense", &id), static_cast<uint64_t>(-EINVAL));
  EXPECT_EQ(id, static_cast<unsigned>(-1));
  rte_rawdev_stop(a_);  // counts outlive the queue pair
  ASSERT_EQ(rte_rawdev_start(a_), 0);
  EXPECT_EQ(rte_rawdev_xstats_by_name_get(a_, "qp0_tx_messages", nullptr), 1u);
}

TEST_F(RawPair, HasAttributes) {
  uint64_t value = 0;
  EXPECT_EQ(rte_rawdev_get_attr(a_, "link_up", &value), 0);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(rte_rawdev_get_attr(a_, "reg.0x0", &value), 0);
  EXPECT_EQ(value, regs::kMagic);
  EXPECT_EQ(rte_rawdev_get_attr(a_, "qp0.owner_pid", &value), 0);
  EXPECT_EQ(value, static_cast<uint64_t>(getpid()));
  EXPECT_EQ(rte_rawdev_set_attr(a_, "qp1.dest_id", 0x77), 0);
  EXPECT_EQ(rte_rawdev_get_attr(a_, "qp1.dest_id", &value), 0);
  EXPECT_EQ(value, 0x77u);
  EXPECT_EQ(rte_rawdev_set_attr(a_, "qp1.dest_id", 0x101), 0);
  LogCapture log;
  EXPECT_EQ(rte_rawdev_get_attr(a_, "nonsense", &value), -ENOENT);
  EXPECT_NE(log.text().find("no attribute 'nonsense'"), std::string::npos);
  EXPECT_NE(rte_rawdev_set_attr(a_, "reg.0x0", 1), 0) << "the magic is the card's";
  EXPECT_NE(rte_rawdev_get_attr(a_, "reg.0x3", &value), 0) << "not aligned";
}

TEST_F(RawPair, DumpsRegistersAndRings) {
  char* text = nullptr;
  size_t len = 0;
  FILE* const file = open_memstream(&text, &len);
  ASSERT_EQ(rte_rawdev_dump(a_, file), 0);
  fclose(file);
  EXPECT_NE(std::strstr(text, "ID.MAGIC                 52494f43"), nullptr) << text;
  EXPECT_NE(std::strstr(text, "QP[0].tx         running"), nullptr) << text;
  EXPECT_LT(len, 8191u) << "longer than /rawdev/dump can return";
  free(text);
}

TEST_F(RawPair, ClaimsQueuePairsOnce) {
  LogCapture log;
  EXPECT_EQ(rte_rawdev_queue_setup(a_, 2, nullptr, 0), -EINVAL);
  EXPECT_NE(log.text().find("no queue pair 2"), std::string::npos) << log.text();
  EXPECT_EQ(rte_rawdev_queue_setup(a_, 1, nullptr, 0), -EBUSY) << "started";
  EXPECT_EQ(rte_rawdev_queue_release(a_, 0), -EBUSY) << "started";
}

TEST_F(RawPair, ChecksQueueConfigurations) {
  rte_rawdev_stop(a_);
  rte_raw_rio_queue_conf conf{};
  ASSERT_EQ(rte_rawdev_queue_conf_get(a_, 1, &conf, sizeof(conf)), 0);
  EXPECT_EQ(conf.tx_log2, 9);
  conf.tx_log2 = 30;
  LogCapture log;
  EXPECT_EQ(rte_rawdev_queue_setup(a_, 1, &conf, sizeof(conf)), -EINVAL);
  EXPECT_NE(log.text().find("tx_log2 is 30"), std::string::npos) << log.text();
  conf.tx_log2 = 6;
  conf.dedicated[3] = {.source = 0x200, .mbox = 4, .open = 1};
  EXPECT_EQ(rte_rawdev_queue_setup(a_, 1, &conf, sizeof(conf)), -EINVAL);
  EXPECT_NE(log.text().find("mailbox 4"), std::string::npos) << log.text();
  EXPECT_EQ(rte_rawdev_queue_setup(a_, 1, &conf, sizeof(conf) - 1), -EINVAL);
  conf.dedicated[3].mbox = 3;
  EXPECT_EQ(rte_rawdev_queue_setup(a_, 1, &conf, sizeof(conf)), 0);
  ASSERT_EQ(rte_rawdev_start(a_), 0);
  EXPECT_NE(raw_queue_pair(a_, 1)->dedicated(3), nullptr);
  rte_rawdev_stop(a_);
  EXPECT_EQ(rte_rawdev_queue_release(a_, 1), 0);
  ASSERT_EQ(rte_rawdev_start(a_), 0);
}

TEST_F(RawPair, ReceivesInDedicatedQueues) {
  rte_rawdev_stop(b_);
  rte_raw_rio_queue_conf conf{};
  ASSERT_EQ(rte_rawdev_queue_conf_get(b_, 0, &conf, sizeof(conf)), 0);
  conf.dedicated[5] = {.source = 0x100, .mbox = 1, .open = 1};
  ASSERT_EQ(rte_rawdev_queue_setup(b_, 0, &conf, sizeof(conf)), 0);
  ASSERT_EQ(rte_rawdev_start(b_), 0);
  rte_raw_rio_context ring{.queue_pair = 0, .ring = RTE_RAW_RIO_DEDICATED0 + 5};
  rte_raw_rio_entry entry{.iova = iova(2), .cookie = 3, .size_bytes = 512};
  rte_rawdev_buf place{.buf_addr = &entry};
  rte_rawdev_buf* places[] = {&place};
  ASSERT_EQ(rte_rawdev_enqueue_buffers(b_, places, 1, &ring), 1);
  std::memset(memory_, 0xC3, 512);
  rte_raw_rio_tx tx{};
  tx.iova = iova(0);
  tx.dest_id = b_dest_;
  tx.length_bytes = 512;
  tx.mbox = 1;
  place.buf_addr = &tx;
  ASSERT_EQ(rte_rawdev_enqueue_buffers(a_, places, 1, nullptr), 1);
  rte_raw_rio_done done{};
  place.buf_addr = &done;
  ASSERT_TRUE(poll_until([&] { return rte_rawdev_dequeue_buffers(b_, places, 1, &ring) == 1; }));
  EXPECT_EQ(done.status, RTE_RAW_RIO_OK);
  EXPECT_EQ(done.bytes, 512u);
  EXPECT_EQ(std::memcmp(memory_, memory_ + 2 * kBytes, 512), 0);
  pmd::TxDone sent{};
  ASSERT_TRUE(poll_until([&] {
    let_answer(b_);
    return raw_queue_pair(a_, 0)->tx().reap(&sent, 1) == 1;
  }));
  EXPECT_EQ(sent.status, pmd::Status::kOk);
  const auto received = [&] {
    return rte_rawdev_xstats_by_name_get(b_, "qp0_dedicated_messages", nullptr);
  };
  const uint64_t messages = received();
  EXPECT_GT(messages, 0u);
  EXPECT_EQ(raw_queue_pair(b_, 0)->close_dedicated(5), 0);
  EXPECT_EQ(received(), messages) << "counts of a closed queue stay";
  rte_rawdev_stop(b_);
  conf.dedicated[5].open = 0;
  ASSERT_EQ(rte_rawdev_queue_setup(b_, 0, &conf, sizeof(conf)), 0);
  ASSERT_EQ(rte_rawdev_start(b_), 0);
}

TEST_F(RawPair, ReachesExternalMemoryOnceItIsMapped) {
  constexpr size_t kLen = 1 << 16;
  void* const va = mmap(nullptr, kLen, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(va, MAP_FAILED);
  const auto external = reinterpret_cast<uint64_t>(va);
  const auto send = [&](uint64_t from) {
    const pmd::TxMessage message{
        .iova = from, .cookie = 0, .dest_id = b_dest_, .length_bytes = 64, .mbox = 0, .flags = 0};
    pmd::TxDone done{};
    done.status = pmd::Status::kFormat;
    pmd::RxMessage got{};
    EXPECT_EQ(raw_queue_pair(a_, 0)->tx().burst(&message, 1), 1);
    EXPECT_TRUE(poll_until([&] {
      (void)raw_queue_pair(b_, 0)->shared().burst(&got, 1);
      return raw_queue_pair(a_, 0)->tx().reap(&done, 1) == 1;
    }));
    return done.status;
  };
  const pmd::RxBuffer buffer{.iova = iova(1), .cookie = 0};
  ASSERT_EQ(raw_queue_pair(b_, 0)->shared().post(&buffer, 1), 1);
  EXPECT_EQ(send(external), pmd::Status::kHostReadFailed);
  rte_rawdev_info info{};
  ASSERT_EQ(rte_rawdev_info_get(a_, &info, 0), 0);
  ASSERT_EQ(rte_extmem_register(va, kLen, nullptr, 0, 4096), 0);
  ASSERT_EQ(rte_dev_dma_map(info.device, va, external, kLen), 0);
  EXPECT_EQ(send(external + 4096), pmd::Status::kOk);
  ASSERT_EQ(rte_dev_dma_unmap(info.device, va, external, kLen), 0);
  EXPECT_EQ(send(external), pmd::Status::kHostReadFailed);
  EXPECT_EQ(rte_extmem_unregister(va, kLen), 0);
  munmap(va, kLen);
}

TEST_F(RawPair, ResetsWithItsQueuePairs) {
  EXPECT_EQ(rte_rawdev_reset(a_), 0);
  EXPECT_NE(raw_queue_pair(a_, 0), nullptr);
  EXPECT_EQ(info_of(a_).base_dest_id, 0x100u);
}

TEST_F(RawPair, TakesAnotherConfiguration) {
  rte_rawdev_stop(a_);
  rte_raw_rio_config config{};
  config.base_dest_id = 0x300;
  config.response_timeout_us = 5000;
  rte_rawdev_info info{};
  info.dev_private = &config;
  ASSERT_EQ(rte_rawdev_configure(a_, &info, sizeof(config)), 0);
  EXPECT_EQ(info_of(a_).base_dest_id, 0x300u);
  uint64_t word = 0;
  char name[32];
  snprintf(name, sizeof(name), "reg.0x%x", regs::id::response_timeout_us());
  EXPECT_EQ(rte_rawdev_get_attr(a_, name, &word), 0);
  EXPECT_EQ(word, 5000u);
  config.response_timeout_us = 4'000'000'000;
  EXPECT_EQ(rte_rawdev_configure(a_, &info, sizeof(config)), -EINVAL);
  config.response_timeout_us = 5000;
  config.receive_timeout_us = 10'001;
  EXPECT_EQ(rte_rawdev_configure(a_, &info, sizeof(config)), -EINVAL) << "more than twice";
  config.receive_timeout_us = 0;
  config.base_dest_id = 0xFFFFFFFF;
  EXPECT_EQ(rte_rawdev_configure(a_, &info, sizeof(config)), -EINVAL);
  EXPECT_EQ(info_of(a_).base_dest_id, 0x300u) << "unchanged";
  config = {.base_dest_id = 0x100,
            .response_timeout_us = 100'000,
            .receive_timeout_us = 0,
            .retry_limit = 0,
            .retry_delay_us = 0};
  ASSERT_EQ(rte_rawdev_configure(a_, &info, sizeof(config)), 0);
  ASSERT_EQ(rte_rawdev_start(a_), 0);
}

TEST_F(RawPair, SwitchesFaultsOnAndOff) {
  EXPECT_EQ(pmd::raw_set_faults(a_, 1, 0.5), 0);
  uint64_t ppm = 0;
  EXPECT_EQ(rte_rawdev_get_attr(a_, "fault_rate_ppm", &ppm), 0);
  EXPECT_EQ(ppm, 500'000u);
  EXPECT_EQ(pmd::raw_set_faults(a_, 1, 1.5), -EINVAL);
  EXPECT_EQ(pmd::raw_set_faults(a_, 1, 0.0), 0);
  EXPECT_EQ(pmd::raw_set_faults(60, 1, 0.0), -ENODEV);
}

TEST_F(RawPair, TestsItself) {
  LogCapture log;
  EXPECT_EQ(rte_rawdev_selftest(a_), 0) << log.text();
  EXPECT_EQ(rte_rawdev_selftest(b_), 0) << log.text();
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "pair",
      {"--vdev=raw_rio0,wire=pair,qps=2", "--vdev=raw_rio1,wire=pair,qps=2", "--no-telemetry"});
}
