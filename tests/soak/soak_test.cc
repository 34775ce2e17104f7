// A million messages between two cards under every fault: each is delivered once and byte for byte,
// or reported refused or in doubt, and no byte outside of posted buffers is touched.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "tests/support/env_number.hpp"
#include "tests/support/model_bus.hpp"

namespace rio::test {
namespace {

using pmd::Status;

constexpr uint32_t kIds[2] = {0x11, 0x22};
constexpr uint32_t kBuffers = 128;           // posted by each card
constexpr uint32_t kSlotBytes = 4096 + 256;  // a buffer and its red zone
constexpr uint8_t kRed = 0xA5;
constexpr uint32_t kSendSlots = 64;

/// The head of each message.
struct Header {
  uint64_t number;
  uint32_t length;
  uint32_t check;
};

uint32_t mix(uint64_t x) {
  x *= 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  return static_cast<uint32_t>(x >> 32);
}

void fill(uint8_t* at, uint64_t number, uint32_t length) {
  const Header header{number, length, mix(number ^ length)};
  std::memcpy(at, &header, sizeof(header));
  for (uint32_t i = sizeof(header); i < length; ++i) {
    at[i] = static_cast<uint8_t>(mix(number) + i * 7);
  }
}

enum Fate : uint8_t { kUnknown = 0, kOk, kRefused, kDoubt };

struct Message {
  Fate fate = kUnknown;
  uint8_t delivered = 0;
};

/// One card, its driver, and what it has sent.
struct Side {
  std::unique_ptr<ModelBus> bus;
  std::unique_ptr<pmd::Card> card;
  std::unique_ptr<pmd::QueuePair> pair;
  pmd::DmaMemory receive;
  pmd::DmaMemory send;
  std::vector<Message> messages;
  std::deque<uint64_t> free_buffers;
  std::vector<uint32_t> free_slots;
  std::vector<uint64_t> slot_message = std::vector<uint64_t>(kSendSlots);
  uint64_t bad = 0;
  uint32_t pause = 0;  ///< turns until it sends again, after the link was down
};

class Soak {
 public:
  /// @param fast messages as units, without faults, into a queue that is mostly full.
  Soak(uint64_t seed, uint64_t count, bool fast)
      : seed_(seed), count_(count), random_(seed * 77 + 5), fast_(fast) {}

  void run() {
    for (uint32_t s = 0; s < 2; ++s) {
      open(s);
    }
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    for (int i = 0; i < 600; ++i) {
      turn_nothing();
    }
    uint64_t idle = 0;
    while (left() && idle < 4'000'000) {
      const bool first = turn(0);
      const bool moved = turn(1) || first;
      idle = moved ? 0 : idle + 1;
    }
    EXPECT_FALSE(left()) << "stuck, seed " << seed_;
    for (uint32_t i = 0; i < 8; ++i) {
      for (Side& side : sides_) {
        drawn[i] += side.bus->card().statistics().faults[i];
      }
    }
    for (Side& side : sides_) {
      side.bus->card().set_faults({});
    }
    for (int i = 0; i < 20'000; ++i) {
      turn(0);
      turn(1);
    }
    check();
  }

  uint64_t fates[4] = {};
  uint64_t drawn[8] = {};      // number of faults by kind
  uint64_t statuses[16] = {};  // number of sent messages by status

 private:
  uint32_t below(uint32_t n) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((random_ >> 33) % n);
  }

  void open(uint32_t s) {
    Side& side = sides_[s];
    model::Config config;
    if (!fast_) {
      config.faults = {seed_ * 2 + s, 0.002, model::kAllFaults};
      config.pcie_seed = seed_ % 2 == 0 ? seed_ + 1 : 0;
    }
    config.rx_contexts = 8;
    side.bus = std::make_unique<ModelBus>(config, cable_->plug(static_cast<int>(s)), &clock_, 200);
    ASSERT_TRUE(side.bus->ok());
    pmd::CardConfig card;
    card.dest_ids = {kIds[s]};
    card.response_timeout_us = 2000;
    card.receive_timeout_us = 4000;
    card.retry_limit = fast_ ? 0 : 50;
    ASSERT_EQ(pmd::Card::open(*side.bus, card, &side.card), 0);
    pmd::QueuePairConfig rings;
    rings.start_index = seed_ % 3 == 0 ? 0xFFFFFF00u : 0;
    ASSERT_EQ(side.card->open_queue_pair(0, rings, &side.pair), 0);
    ASSERT_EQ(side.bus->dma_alloc(static_cast<size_t>(kSlotBytes) * kBuffers, 4096, &side.receive),
              0);
    ASSERT_EQ(side.bus->dma_alloc(4096ull * kSendSlots, 4096, &side.send), 0);
    std::memset(side.receive.va, kRed, side.receive.len_bytes);
    for (uint32_t b = 0; b < (fast_ ? 8 : kBuffers); ++b) {
      post(side, b);
    }
    for (uint32_t b = 0; b < kSendSlots; ++b) {
      side.free_slots.push_back(b);
    }
    side.messages.resize(count_);
  }
  void post(Side& side, uint64_t b) {
    side.free_buffers.push_back(b);
    post_free(side);
  }
  /// Posts buffers, or none while the ring is full: a straggler may hold the entries behind it.
  void post_free(Side& side) {
    while (!side.free_buffers.empty()) {
      const uint64_t b = side.free_buffers.front();
      const pmd::RxBuffer buffer{side.receive.iova + b * kSlotBytes, b};
      if (side.pair->shared().post(&buffer, 1) != 1) {
        return;
      }
      side.free_buffers.pop_front();
    }
  }
  static uint8_t* place(const Side& side, uint64_t b) {
    return static_cast<uint8_t*>(side.receive.va) + b * kSlotBytes;
  }

  [[nodiscard]] bool left() const {
    for (const Side& side : sides_) {
      if (next_[&side - sides_] < count_ || side.free_slots.size() < kSendSlots) {
        return true;
      }
    }
    return false;
  }

  /// Turns until the link is up.
  void turn_nothing() {
    for (Side& side : sides_) {
      side.bus->poll_hook(0)();
    }
  }

  bool turn(uint32_t s) {
    Side& side = sides_[s];
    bool moved = false;
    uint64_t& next = next_[s];
    side.pause -= side.pause > 0 ? 1 : 0;
    for (uint32_t burst = side.pause > 0 ? 0 : below(8);
         burst > 0 && next < count_ && !side.free_slots.empty(); --burst) {
      const uint32_t slot = side.free_slots.back();
      const uint32_t roll = below(100);
      const auto length = static_cast<uint16_t>(roll < 70   ? 16 + below(241)
                                                : roll < 95 ? 257 + below(1024)
                                                            : 16 + below(4081));
      uint8_t* at = static_cast<uint8_t*>(side.send.va) + 4096ull * slot;
      fill(at, next, length);
      pmd::TxMessage message{
          .iova = side.send.iova + 4096ull * slot,
          .cookie = slot,
          .dest_id = kIds[1 - s],
          .length_bytes = length,
          .mbox = static_cast<uint8_t>(below(length > 256 ? 4 : 64)),
          .flags = static_cast<uint8_t>(below(20) == 0 ? pmd::TxFlags::kOrder : 0)};
      if (side.pair->tx().burst(&message, 1) != 1) {
        break;
      }
      side.free_slots.pop_back();
      side.slot_message[slot] = next++;
      moved = true;
    }
    pmd::TxDone done[16];
    for (uint16_t n = side.pair->tx().reap(done, 16); n > 0; --n) {
      settle(side, done[n - 1]);
      moved = true;
    }
    post_free(side);
    pmd::RxMessage got[16];
    for (uint16_t n = side.pair->shared().burst(got, 16), i = 0; i < n; ++i) {
      take(side, sides_[1 - s], got[i]);
      moved = true;
    }
    return moved;
  }

  void settle(Side& side, const pmd::TxDone& done) {
    Message& message = side.messages[side.slot_message[done.cookie]];
    ASSERT_EQ(message.fate, kUnknown) << "completed twice, seed " << seed_;
    ++statuses[static_cast<uint32_t>(done.status) & 15];
    message.fate = done.status == Status::kOk                ? kOk
                   : done.status == Status::kResponseTimeout ? kDoubt
                                                             : kRefused;
    side.free_slots.push_back(static_cast<uint32_t>(done.cookie));
    if (done.status == Status::kLinkDown) {
      side.pause = 200;
    }
  }

  void take(Side& side, Side& from, const pmd::RxMessage& got) {
    uint8_t* at = place(side, got.cookie);
    if (got.status == Status::kOk) {
      Header header;
      std::memcpy(&header, at, sizeof(header));
      std::vector<uint8_t> expected(4096);
      const bool sane = header.number < count_ && header.length >= 16 && header.length <= 4096 &&
                        header.check == mix(header.number ^ header.length);
      if (!sane || got.length_bytes != ((header.length + 7u) & ~7u)) {
        ++side.bad;
      } else {
        fill(expected.data(), header.number, header.length);
        side.bad += std::memcmp(expected.data(), at, header.length) != 0 ? 1 : 0;
        ++from.messages[header.number].delivered;
      }
    }
    // The buffer itself may hold any bytes; the card must not have written behind it.
    for (uint32_t i = 4096; i < kSlotBytes; ++i) {
      side.bad += at[i] != kRed ? 1 : 0;
    }
    std::memset(at, kRed, 4096);
    post(side, got.cookie);
  }

  void check() {
    for (Side& side : sides_) {
      EXPECT_EQ(side.bad, 0u) << "seed " << seed_;
      for (uint64_t i = 0; i < count_; ++i) {
        const Message& message = side.messages[i];
        ++fates[message.fate];
        ASSERT_LE(message.delivered, 1) << "twice: message " << i << " seed " << seed_;
        ASSERT_NE(message.fate, kUnknown) << "message " << i << " seed " << seed_;
        ASSERT_TRUE(message.fate != kOk || message.delivered == 1)
            << "lost: message " << i << " seed " << seed_;
        ASSERT_TRUE(message.fate != kRefused || message.delivered == 0)
            << "refused and delivered: message " << i << " seed " << seed_;
      }
      ASSERT_EQ(side.pair->stop(), 0);
      EXPECT_EQ(side.pair->tx().stats().bad_completions, 0u);
      EXPECT_EQ(side.pair->shared().stats().bad_completions, 0u);
    }
  }

  uint64_t seed_;
  uint64_t count_;
  uint64_t random_;
  bool fast_;
  ManualClock clock_;
  std::shared_ptr<model::Cable> cable_ = model::make_cable();
  Side sides_[2];
  uint64_t next_[2] = {};
};

TEST(Soak, EveryFault) {
  const uint64_t seeds = env_number("RIO_SOAK_SEEDS", 4);
  const uint64_t first = env_number("RIO_SOAK_FIRST", 1);
  const uint64_t messages = env_number("RIO_SOAK_MESSAGES", 1'000'000);
  uint64_t drawn[8] = {};
  for (uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    Soak soak(seed, messages / 2 / std::max<uint64_t>(1, std::min<uint64_t>(seeds, 8)), false);
    ASSERT_NO_FATAL_FAILURE(soak.run());
    for (uint32_t i = 0; i < 8; ++i) {
      drawn[i] += soak.drawn[i];
    }
    std::printf("seed %llu: %llu delivered, %llu refused, %llu in doubt\n",
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(soak.fates[kOk]),
                static_cast<unsigned long long>(soak.fates[kRefused]),
                static_cast<unsigned long long>(soak.fates[kDoubt]));
    for (uint32_t i = 0; i < 8; ++i) {
      std::printf("  status %u: %llu\n", i, static_cast<unsigned long long>(soak.statuses[i]));
    }
    EXPECT_GT(soak.fates[kOk], soak.fates[kRefused] + soak.fates[kDoubt]);
  }
  const char* const names[8] = {"RETRY",         "ERROR",       "lost response", "reorder",
                                "slow receiver", "bad address", "link down",     "stuck queue"};
  for (uint32_t i = 0; i < 8; ++i) {
    std::printf("%-14s drawn %llu times\n", names[i], static_cast<unsigned long long>(drawn[i]));
    EXPECT_GT(drawn[i], 0u) << names[i];
  }
}

TEST(Soak, FullQueuesInFastMode) {
  const uint64_t first = env_number("RIO_SOAK_FIRST", 1);
  for (uint64_t seed = first; seed < first + 4 && !HasFailure(); ++seed) {
    Soak soak(seed, env_number("RIO_SOAK_MESSAGES", 1'000'000) / 20, true);
    ASSERT_NO_FATAL_FAILURE(soak.run());
    EXPECT_EQ(soak.fates[kRefused] + soak.fates[kDoubt], 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rio::test
