// Every error path of riopmd.h.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "fpga/model/card.hpp"
#include "pmd/api/handle.hpp"
#include "pmd/api/riopmd.h"
#include "pmd/bus/emu/emu_bus.hpp"

namespace rio {
namespace {

constexpr uint32_t kId = 3;
constexpr int kPolls = 10000;

std::string& lines() {
  static std::string text;
  return text;
}

bool logged(const char* part) {
  return lines().find(part) != std::string::npos;
}

rio_options options_of() {
  rio_options options{};
  options.size_bytes = sizeof(options);
  options.dest_id = kId;
  return options;
}

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    lines().clear();
    rio_set_log([](int level, const char* line) {
      EXPECT_GE(level, 0);
      EXPECT_LE(level, 2);
      lines() += std::string(line) + "\n";
    });
  }
  void TearDown() override {
    EXPECT_EQ(rio_close(card_), 0) << lines();
    rio_set_log(nullptr);
  }
  void open(const char* name = "emu:loop") {
    const rio_options options = options_of();
    ASSERT_EQ(rio_open(name, &options, &card_), 0) << lines();
  }
  int open_with(const rio_options& options) { return rio_open("emu:loop", &options, &card_); }
  /// Sends one message and waits for its fate. @return status, or -1: not accepted.
  int send(const rio_tx_message& message) {
    if (rio_tx_burst(card_, &message, 1) != 1) {
      return -1;
    }
    rio_tx_done done{};
    for (int i = 0; i < kPolls && rio_tx_reap(card_, &done, 1) == 0; ++i) {
    }
    return done.status;
  }

  rio_card* card_ = nullptr;
};

TEST_F(CApi, BadArgumentsAreRefused) {
  EXPECT_EQ(rio_open(nullptr, nullptr, &card_), -EINVAL);
  EXPECT_EQ(rio_open("emu:loop", nullptr, nullptr), -EINVAL);
  EXPECT_EQ(rio_open("nonsense", nullptr, &card_), -EINVAL);
  EXPECT_TRUE(logged("card \"nonsense\": no such card"));
  EXPECT_EQ(rio_open_queue_pair(nullptr, nullptr, &card_), -EINVAL);
  EXPECT_EQ(card_, nullptr);
  EXPECT_EQ(rio_close(nullptr), 0);
  EXPECT_EQ(rio_api_version(), RIO_API_VERSION);
}

TEST_F(CApi, BadOptionsAreRefused) {
  constexpr struct {
    uint32_t rio_options::*member;
    uint32_t value;
    int result;
    const char* named;
  } kWrong[] = {
      {&rio_options::size_bytes, 0, -EINVAL, "size_bytes is 0"},
      {&rio_options::size_bytes, 7, -EINVAL, "size_bytes is 7"},
      {&rio_options::queue_pair, 1, -ENOENT, "no queue pair 1"},
      {&rio_options::dest_id, 0x10000, -EINVAL, "destID 65536"},
      {&rio_options::dest_id_bits, 24, -EINVAL, "dest_id_bits is 24"},
      {&rio_options::rings, 1u << RIO_RING_DEDICATED0, -EINVAL, "rings 0x100"},
      {&rio_options::tx_entries, 100, -EINVAL, "tx_entries is 100"},
      {&rio_options::tx_entries, 1u << 20, -EINVAL, "tx"},
      {&rio_options::shared_entries, 3, -EINVAL, "shared_entries is 3"},
      {&rio_options::dedicated_entries, 6, -EINVAL, "dedicated_entries is 6"},
      {&rio_options::doorbell_entries, 1, -EINVAL, "doorbell"},
      {&rio_options::dma_entries, 5, -EINVAL, "dma_entries is 5"},
      {&rio_options::maint_entries, 5, -EINVAL, "maint_entries is 5"},
      {&rio_options::event_entries, 5, -EINVAL, "event_entries is 5"},
      {&rio_options::irq_rings, 2, -ENOTSUP, "stepping=thread"},
      {&rio_options::irq_moderation_us, 65536, -EINVAL, "irq_moderation_us is 65536"},
      {&rio_options::receive_times, 2, -EINVAL, "receive_times 2"},
      {&rio_options::vf_queue_pairs, 3, -EINVAL, "3 queue pairs for each virtual function"},
      {&rio_options::push, 2, -EINVAL, "push 2"},
      {&rio_options::push, 1, -ENOTSUP, "open it without push"},
      {&rio_options::barriers, 2, -EINVAL, "barriers 2"},
      {&rio_options::barrier_entries, 3, -EINVAL, "barrier_entries is 3"},
  };
  for (const auto& wrong : kWrong) {
    lines().clear();
    rio_options options = options_of();
    options.*wrong.member = wrong.value;
    EXPECT_EQ(open_with(options), wrong.result) << wrong.named;
    EXPECT_TRUE(logged(wrong.named)) << wrong.named << ": " << lines();
    EXPECT_EQ(card_, nullptr);
  }
}

TEST_F(CApi, BarriersNeedAnEngine) {
  rio_options options = options_of();
  options.barriers = 1;
  EXPECT_EQ(rio_open("emu:loop,barrier=0", &options, &card_), -ENOTSUP);
  EXPECT_TRUE(logged("no barrier engine"));
  options.barriers = 0;
  ASSERT_EQ(rio_open("emu:loop,barrier=0", &options, &card_), 0);
  const char* name = nullptr;
  uint32_t value = 0;
  EXPECT_EQ(rio_barrier_counter(card_, 0, &name, &value), -ENOENT);
}

TEST_F(CApi, OptionsOfOtherVersionsAreAccepted) {
  struct Newer {
    rio_options known;
    uint32_t more;
  } newer{options_of(), 0};
  newer.known.size_bytes = sizeof(newer);
  newer.more = 1;
  EXPECT_EQ(open_with(newer.known), -E2BIG);
  EXPECT_TRUE(logged("install a newer libriopmd"));
  newer.more = 0;
  EXPECT_EQ(open_with(newer.known), 0);
  EXPECT_EQ(rio_close(card_), 0);
  rio_options older = options_of();
  older.size_bytes = offsetof(rio_options, dest_id_bits);
  older.dest_id_bits = 77;  // beyond that version: ignored
  ASSERT_EQ(open_with(older), 0);
  rio_info info;
  ASSERT_EQ(rio_get_info(card_, &info, sizeof(info)), 0);
  EXPECT_EQ(info.dest_id, kId);
  uint32_t small[3] = {0, 0, 42};
  ASSERT_EQ(rio_get_info(card_, reinterpret_cast<rio_info*>(small), 8), 0);
  EXPECT_EQ(small[1], kId);
  EXPECT_EQ(small[2], 42u);
  EXPECT_EQ(rio_get_info(card_, nullptr, 8), -EINVAL);
  EXPECT_EQ(rio_get_info(card_, &info, 0), -EINVAL);
}

TEST_F(CApi, ACardIsNotOpenedTwice) {
  open("emu:c-twice");
  rio_card* second = nullptr;
  rio_card* third = nullptr;
  ASSERT_EQ(rio_open("emu:c-twice", nullptr, &second), 0);
  EXPECT_EQ(rio_open("emu:c-twice", nullptr, &third), -EBUSY);
  EXPECT_TRUE(logged("has two ends already"));
  EXPECT_EQ(rio_open_queue_pair(card_, nullptr, &third), -EBUSY);
  EXPECT_TRUE(logged("qp 0 is in use"));
  EXPECT_EQ(third, nullptr);
  EXPECT_EQ(rio_close(second), 0);
}

TEST_F(CApi, ADedicatedQueueIsNotOpenedTwice) {
  open();
  EXPECT_EQ(rio_dedicated_open(card_, 8, kId, 0), -EINVAL);
  EXPECT_EQ(rio_dedicated_open(card_, 0, kId, 4), -EINVAL);
  EXPECT_EQ(rio_dedicated_close(card_, 0), -ENOENT);
  EXPECT_EQ(rio_dedicated_close(card_, 8), -ENOENT);
  ASSERT_EQ(rio_dedicated_open(card_, 0, kId, 0), 0);
  EXPECT_EQ(rio_dedicated_open(card_, 0, kId, 0), -EBUSY);
  EXPECT_TRUE(logged("dedicated queue 0 is open; close it first"));
  EXPECT_EQ(rio_dedicated_close(card_, 0), 0);
  rio_dedicated_entry entry{};
  rio_entry_done done;
  EXPECT_EQ(rio_dedicated_post(card_, 0, &entry, 1), 0);
  EXPECT_EQ(rio_dedicated_reap(card_, 0, &done, 1), 0);
  EXPECT_EQ(rio_dedicated_post(card_, 8, &entry, 1), 0);
  EXPECT_EQ(rio_dedicated_reap(card_, UINT32_MAX, &done, 1), 0);
}

TEST_F(CApi, BadMessagesAreRejected) {
  open();
  rio_memory memory;
  ASSERT_EQ(rio_alloc(card_, 8192, 4096, &memory), 0);
  const auto rejected = [&](uint16_t length, uint64_t offset, uint8_t mbox, uint8_t flags) {
    rio_tx_message message{};
    message.iova = memory.iova + offset;
    message.dest_id = kId;
    message.length_bytes = length;
    message.mbox = mbox;
    message.flags = flags;
    EXPECT_EQ(send(message), -1);
    return rio_last_reject(card_, RIO_RING_TX);
  };
  EXPECT_EQ(rejected(0, 0, 0, 0), RIO_REJECT_LENGTH);
  EXPECT_EQ(rejected(4097, 0, 0, 0), RIO_REJECT_LENGTH);
  EXPECT_EQ(rejected(65535, 0, 0, 0), RIO_REJECT_LENGTH);
  EXPECT_EQ(rejected(64, 1, 0, 0), RIO_REJECT_ALIGNMENT);
  EXPECT_EQ(rejected(4096, 0, 4, 0), RIO_REJECT_MAILBOX);
  EXPECT_EQ(rejected(64, 0, 64, 0), RIO_REJECT_MAILBOX);
  EXPECT_EQ(rejected(64, 0, 0, 3), RIO_REJECT_OPERATION);
  rio_stats stats;
  ASSERT_EQ(rio_get_stats(card_, RIO_RING_TX, &stats), 0);
  EXPECT_EQ(stats.rejected, 7u);
  EXPECT_EQ(stats.messages + stats.failed, 0u);
}

TEST_F(CApi, BadBuffersAndEntriesAreRejected) {
  open();
  rio_memory memory;
  ASSERT_EQ(rio_alloc(card_, 8192, 4096, &memory), 0);
  const rio_rx_buffer buffers[3] = {{memory.iova, 0}, {memory.iova + 8, 1}, {memory.iova, 2}};
  EXPECT_EQ(rio_rx_post(card_, buffers, 3), 1);
  EXPECT_EQ(rio_last_reject(card_, RIO_RING_SHARED), RIO_REJECT_ALIGNMENT);
  EXPECT_EQ(rio_outstanding(card_, RIO_RING_SHARED), 1);
  EXPECT_EQ(rio_free_count(card_, RIO_RING_SHARED), 511);
  ASSERT_EQ(rio_dedicated_open(card_, 7, kId, 3), 0);
  const auto rejected = [&](uint64_t offset, uint32_t size) {
    const rio_dedicated_entry entry{memory.iova + offset, 0, size};
    EXPECT_EQ(rio_dedicated_post(card_, 7, &entry, 1), 0);
    return rio_last_reject(card_, RIO_RING_DEDICATED0 + 7);
  };
  EXPECT_EQ(rejected(256, 256), RIO_REJECT_ALIGNMENT);
  EXPECT_EQ(rejected(0, 0), RIO_REJECT_LENGTH);
  EXPECT_EQ(rejected(0, 4097), RIO_REJECT_LENGTH);
  EXPECT_EQ(rejected(0, 4352), RIO_REJECT_LENGTH);
  EXPECT_EQ(rejected(0, 255), RIO_REJECT_LENGTH);
  rio_dma_request request{};
  request.iova = memory.iova;
  request.dest_id = kId;
  request.op = 77;
  request.length_bytes = 8;
  EXPECT_EQ(rio_dma_post(card_, &request, 1), 0);
  EXPECT_EQ(rio_last_reject(card_, RIO_RING_DMA), RIO_REJECT_OPERATION);
}

TEST_F(CApi, UnregisteredMemoryIsReported) {
  open();
  alignas(64) static uint8_t bytes[64];
  uint64_t iova = 0;
  EXPECT_EQ(rio_iova(card_, bytes, sizeof(bytes), &iova), -ENOENT);
  rio_tx_message message{};
  message.iova = reinterpret_cast<uintptr_t>(bytes);  // a pointer is not a bus address
  message.dest_id = kId;
  message.length_bytes = sizeof(bytes);
  EXPECT_EQ(send(message), RIO_HOST_READ_FAILED);
  EXPECT_EQ(rio_register(card_, nullptr, 64), -EINVAL);
  EXPECT_EQ(rio_register(card_, bytes, 0), -EINVAL);
  EXPECT_EQ(rio_unregister(card_, bytes, sizeof(bytes)), -ENOENT);
  EXPECT_TRUE(logged("give address and length as registered"));
  const rio_memory nobodys{bytes, 0, sizeof(bytes)};
  EXPECT_EQ(rio_free(card_, &nobodys), -ENOENT);
  rio_memory memory;
  EXPECT_EQ(rio_alloc(card_, 0, 8, &memory), -EINVAL);
  EXPECT_EQ(rio_alloc(card_, 64, 3, &memory), -EINVAL);
  EXPECT_EQ(rio_alloc(card_, SIZE_MAX / 2, 8, &memory), -ENOMEM);
}

TEST_F(CApi, WindowsAndMaintenanceAreChecked) {
  open();
  rio_memory memory;
  ASSERT_EQ(rio_alloc(card_, 4096, 4096, &memory), 0);
  uint32_t index = 99;
  rio_window window{};
  window.iova = memory.iova;
  window.rights = RIO_WINDOW_READ;
  EXPECT_EQ(rio_window_open(card_, &window, &index), -EINVAL);
  window.size_bytes = 4096;
  window.rights = 0;
  EXPECT_EQ(rio_window_open(card_, &window, &index), -EINVAL);
  EXPECT_EQ(index, 99u);
  window.rights = RIO_WINDOW_READ;
  for (uint32_t i = 0; i < regs::kWindowsPerQp; ++i) {
    ASSERT_EQ(rio_window_open(card_, &window, &index), 0);
  }
  EXPECT_EQ(rio_window_open(card_, &window, &index), -ENOSPC);
  EXPECT_EQ(rio_window_close(card_, index), 0);
  EXPECT_EQ(rio_window_close(card_, index), -ENOENT);
  EXPECT_EQ(rio_window_close(card_, 1000), -ENOENT);

  uint32_t words[2] = {1, 2};
  EXPECT_EQ(rio_local_read(card_, 0, nullptr, 1, 100), -EINVAL);
  EXPECT_EQ(rio_local_read(card_, 0, words, 0, 100), -EINVAL);
  EXPECT_EQ(rio_local_read(card_, 0, words, RIO_MAINT_WORDS + 1, 100), -EINVAL);
  EXPECT_EQ(rio_local_read(card_, 2, words, 1, 100), -EINVAL);
  EXPECT_EQ(rio_local_read(card_, 1u << 24, words, 1, 100), -EINVAL);
  EXPECT_EQ(words[0], 1u);
}

TEST_F(CApi, ClosedRingsReturnNothing) {
  rio_options options = options_of();
  options.rings = RIO_RING_BIT(RIO_RING_EVENT);
  ASSERT_EQ(open_with(options), 0);
  rio_tx_message message{};
  rio_tx_gather gather{};
  rio_tx_done sent;
  rio_rx_buffer buffer{};
  rio_rx_message received;
  rio_dma_request request{};
  rio_entry_done done;
  rio_doorbell doorbell;
  rio_event event;
  EXPECT_EQ(rio_tx_burst(card_, &message, 1), 0);
  EXPECT_EQ(rio_tx_burst_gather(card_, &gather, 1), 0);
  EXPECT_EQ(rio_tx_reap(card_, &sent, 1), 0);
  EXPECT_EQ(rio_rx_post(card_, &buffer, 1), 0);
  EXPECT_EQ(rio_rx_burst(card_, &received, 1), 0);
  EXPECT_EQ(rio_dma_post(card_, &request, 1), 0);
  EXPECT_EQ(rio_dma_reap(card_, &done, 1), 0);
  EXPECT_EQ(rio_doorbell_burst(card_, &doorbell, 1), 0);
  EXPECT_EQ(rio_event_burst(card_, &event, 1), 0);
  rio_stats stats;
  EXPECT_EQ(rio_get_stats(card_, RIO_RING_TX, &stats), -ENOENT);
  EXPECT_EQ(rio_get_stats(card_, RIO_RING_EVENT, &stats), 0);
  for (const uint32_t ring : {0u, 5u, 7u, 8u, 15u, 16u, UINT32_MAX}) {
    EXPECT_EQ(rio_ring_state(card_, ring), -ENOENT) << ring;
    EXPECT_EQ(rio_last_reject(card_, ring), -ENOENT) << ring;
  }
  EXPECT_EQ(rio_free_count(card_, RIO_RING_EVENT), -ENOENT);
  EXPECT_EQ(rio_outstanding(card_, RIO_RING_EVENT), -ENOENT);
  uint32_t word = 0;
  EXPECT_EQ(rio_local_read(card_, 0, &word, 1, 100), -ENOTSUP);
  EXPECT_EQ(rio_irq_fd(card_), -ENOENT);
  EXPECT_EQ(rio_irq_ack(card_), -ENOENT);
  EXPECT_EQ(rio_irq_arm(card_, 1), -EINVAL);
}

TEST_F(CApi, AGoneCardIsReported) {
  std::unique_ptr<pmd::EmuBus> bus;
  ASSERT_EQ(pmd::EmuBus::create({}, nullptr, &bus), 0);
  model::Card* const model = bus->card();
  std::unique_ptr<Endpoint> endpoint;
  ASSERT_EQ(Endpoint::open(std::move(bus), {}, &endpoint), 0);
  rio_card* card = pmd::api::wrap(std::move(endpoint)).release();
  rio_memory memory;
  ASSERT_EQ(rio_alloc(card, 4096, 4096, &memory), 0);
  EXPECT_EQ(rio_catch_bus_errors(), 0);
  EXPECT_EQ(rio_gone(card), 0);
  model->vanish();
  EXPECT_EQ(rio_gone(card), 1);
  EXPECT_EQ(rio_wait_link(card, 1), -ENODEV);
  EXPECT_EQ(rio_ring_state(card, RIO_RING_TX), -ENODEV);
  EXPECT_EQ(rio_dedicated_open(card, 0, 1, 0), -ENODEV);
  rio_window window{};
  window.size_bytes = 8;
  window.iova = memory.iova;
  window.rights = RIO_WINDOW_READ;
  uint32_t index = 0;
  EXPECT_EQ(rio_window_open(card, &window, &index), -ENODEV);
  const rio_rx_buffer buffer{memory.iova, 0};
  rio_rx_message message;
  EXPECT_EQ(rio_rx_post(card, &buffer, 1), 1);  // a burst does not check
  EXPECT_EQ(rio_rx_burst(card, &message, 1), 0);
  EXPECT_EQ(rio_close(card), -ENODEV);
}

TEST_F(CApi, PostedEntriesAreFlushed) {
  open();
  rio_memory memory;
  ASSERT_EQ(rio_alloc(card_, 8192, 4096, &memory), 0);
  const rio_rx_buffer buffers[2] = {{memory.iova, 7}, {memory.iova + 4096, 8}};
  ASSERT_EQ(rio_rx_post(card_, buffers, 2), 2);
  EXPECT_EQ(rio_ring_state(card_, RIO_RING_SHARED), 1);
  ASSERT_EQ(rio_stop(card_), 0);
  EXPECT_EQ(rio_ring_state(card_, RIO_RING_SHARED), 0);
  rio_rx_message message[2];
  ASSERT_EQ(rio_rx_burst(card_, message, 2), 2);
  EXPECT_EQ(message[0].cookie, 7u);
  EXPECT_EQ(message[1].cookie, 8u);
  EXPECT_EQ(message[1].status, RIO_FLUSHED);
}

TEST_F(CApi, CodesHaveNames) {
  EXPECT_STREQ(rio_strerror(0), "success");
  EXPECT_STREQ(rio_strerror(5), "success");
  EXPECT_STREQ(rio_strerror(-EBUSY), "in use");
  for (int error = 1; error < 200; ++error) {
    ASSERT_NE(rio_strerror(-error), nullptr);
  }
  for (const int error : {ECONNRESET, ECONNREFUSED, EHOSTUNREACH}) {  // of libriomsg
    EXPECT_EQ(std::string(rio_strerror(-error)).rfind("the peer ", 0), 0u) << error;
  }
  EXPECT_STREQ(rio_strerror(-EMFILE), "Too many open files");  // the system's text
  EXPECT_STREQ(rio_strerror(-100000), "unknown error; the log says more");
  EXPECT_STREQ(rio_status_name(RIO_FLUSHED), "flushed");
  EXPECT_STREQ(rio_status_name(200), "unknown status");
  EXPECT_STREQ(rio_reject_name(RIO_REJECT_MAILBOX), "mailbox");
  EXPECT_STREQ(rio_reject_name(-1), "unknown reject");
  EXPECT_STREQ(rio_reject_name(256), "unknown reject");
  EXPECT_STREQ(rio_event_name(2), "link");
  EXPECT_STREQ(rio_event_name(99), "unknown event");
  open();
  EXPECT_STREQ(rio_name(card_), "emu:loop/0");
}

}  // namespace
}  // namespace rio
