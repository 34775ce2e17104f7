// Several threads: two cards stepped by a thread each, and several queue pairs of one card.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"

namespace rio::test {
namespace {

using pmd::Status;

constexpr uint32_t kMessages = 20'000;

struct Node {
  /// Opens a card with a queue pair and a destID for each thread.
  void open(const char* wire, uint32_t id, uint32_t queue_pairs, uint32_t timeout_us = 10'000'000) {
    pmd::EmuConfig config;
    config.wire = name::Cable{wire};
    config.model.queue_pairs = queue_pairs;
    ASSERT_EQ(pmd::EmuBus::create(config, nullptr, &bus), 0);
    pmd::CardConfig card_config;
    for (uint32_t q = 0; q < queue_pairs; ++q) {
      card_config.dest_ids.push_back(id + q);
    }
    card_config.response_timeout_us = timeout_us;
    card_config.receive_timeout_us = 2 * timeout_us;
    ASSERT_EQ(pmd::Card::open(*bus, card_config, &card), 0);
    pairs.resize(queue_pairs);
    for (uint32_t q = 0; q < queue_pairs; ++q) {
      ASSERT_EQ(card->open_queue_pair(q, {}, &pairs[q]), 0);
    }
  }
  /// Waits until the link is up; to be called before other threads use the card.
  void wait_for_link() {
    while (!card->link().up) {
      bus->poll_hook(0)();
    }
  }
  std::unique_ptr<pmd::EmuBus> bus;
  std::unique_ptr<pmd::Card> card;
  std::vector<std::unique_ptr<pmd::QueuePair>> pairs;
};

/// Sends and receives kMessages numbered messages on one queue pair; each must arrive once and
/// whole.
void exchange(Node& node, uint32_t q, uint32_t peer, std::atomic<uint32_t>& failures,
              std::atomic<uint32_t>& running) {
  pmd::QueuePair& pair = *node.pairs[q];
  static std::mutex alloc_mutex;  // the bus belongs to the control path, which is not thread-safe
  pmd::DmaMemory memory;
  {
    const std::lock_guard lock(alloc_mutex);
    if (node.bus->dma_alloc(256ull * 1280, 4096, &memory) != 0) {
      ++failures;
      return;
    }
  }
  auto* va = static_cast<uint8_t*>(memory.va);
  uint64_t sent = 0;
  uint64_t settled = 0;
  std::vector<bool> seen(kMessages);
  uint64_t received = 0;
  for (uint64_t i = 0; i < 256; ++i) {
    const pmd::RxBuffer buffer{memory.iova + i * 256, i};
    failures += pair.shared().post(&buffer, 1) == 1 ? 0 : 1;
  }
  // A thread that is done still steps its card until all are done: the card has answers to give.
  bool counted = false;
  while (running > 0) {
    if (!counted && settled == kMessages && received == kMessages) {
      counted = true;
      --running;
    }
    for (; sent < kMessages && sent < settled + 64; ++sent) {
      // A message that is refused for long still needs its bytes; the ring holds 512.
      const uint64_t slot = 256 + sent % 1024;
      std::memcpy(va + slot * 256, &sent, 8);
      std::memcpy(va + slot * 256 + 56, &sent, 8);
      const pmd::TxMessage message{.iova = memory.iova + slot * 256,
                                   .cookie = sent,
                                   .dest_id = peer,
                                   .length_bytes = static_cast<uint16_t>(64 + sent % 64),
                                   .mbox = static_cast<uint8_t>(sent % 64),
                                   .flags = 0};
      if (pair.tx().burst(&message, 1) != 1) {
        break;
      }
    }
    pmd::TxDone done[32];
    for (uint16_t n = pair.tx().reap(done, 32); n > 0; --n) {
      if (done[n - 1].status != Status::kOk) {
        ++failures;
        ADD_FAILURE() << "pair " << q << ": status " << static_cast<int>(done[n - 1].status);
      }
      ++settled;
    }
    pmd::RxMessage got[32];
    for (uint16_t n = pair.shared().burst(got, 32), i = 0; i < n; ++i) {
      uint64_t numbers[2];
      std::memcpy(&numbers[0], va + got[i].cookie * 256, 8);
      std::memcpy(&numbers[1], va + got[i].cookie * 256 + 56, 8);
      const uint64_t number = numbers[0];
      const bool good = number < kMessages && numbers[1] == number && !seen[number] &&
                        got[i].length_bytes == ((64 + number % 64 + 7) & ~7ull);
      if (!good) {
        ++failures;
        ADD_FAILURE() << "pair " << q << ": number " << number << " and " << numbers[1] << ", "
                      << got[i].length_bytes << " bytes, arrival " << got[i].arrival << ", the "
                      << received << "th, buffer " << got[i].cookie << ", source " << got[i].source
                      << " status " << static_cast<int>(got[i].status);
      }
      if (number < kMessages) {
        seen[number] = true;
      }
      ++received;
      const pmd::RxBuffer buffer{memory.iova + got[i].cookie * 256, got[i].cookie};
      if (pair.shared().post(&buffer, 1) != 1) {
        ++failures;
        ADD_FAILURE() << "pair " << q << ": the buffer was not accepted";
      }
    }
    if (failures > 100) {
      running = 0;
    }
  }
}

TEST(Threads, TwoCardsAThreadEach) {
  Node a;
  Node b;
  a.open("threads-two", 0x10, 1);
  b.open("threads-two", 0x20, 1);
  a.wait_for_link();
  b.wait_for_link();
  std::atomic<uint32_t> failures{0};
  std::atomic<uint32_t> running{2};
  std::thread other([&] { exchange(b, 0, 0x10, failures, running); });
  exchange(a, 0, 0x20, failures, running);
  other.join();
  EXPECT_EQ(failures, 0u);
}

TEST(Threads, ThreeQueuePairsOfOneCard) {
  Node node;
  node.open("loop", 0x10, 3);
  std::atomic<uint32_t> failures{0};
  std::atomic<uint32_t> running{3};
  std::thread one([&] { exchange(node, 1, 0x12, failures, running); });
  std::thread two([&] { exchange(node, 2, 0x10, failures, running); });
  exchange(node, 0, 0x11, failures, running);
  one.join();
  two.join();
  EXPECT_EQ(failures, 0u);
}

TEST(Threads, ACardThatDisappearsWhileTheOtherSends) {
  for (int round = 0; round < 20; ++round) {
    Node a;
    auto b = std::make_unique<Node>();
    a.open("threads-gone", 0x10, 1, 20'000);
    b->open("threads-gone", 0x20, 1, 20'000);
    std::atomic<bool> stop{false};
    std::thread sender([&] {
      pmd::DmaMemory memory;
      if (a.bus->dma_alloc(4096, 4096, &memory) != 0) {
        return;
      }
      const pmd::TxMessage message{.iova = memory.iova,
                                   .cookie = 1,
                                   .dest_id = 0x20,
                                   .length_bytes = 64,
                                   .mbox = 0,
                                   .flags = 0};
      while (!stop) {
        static_cast<void>(a.pairs[0]->tx().burst(&message, 1));
        pmd::TxDone done[8];
        static_cast<void>(a.pairs[0]->tx().reap(done, 8));
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    b.reset();
    stop = true;
    sender.join();
    EXPECT_EQ(a.pairs[0]->stop(), 0) << "bounded by the response time-out";
  }
}

}  // namespace
}  // namespace rio::test
