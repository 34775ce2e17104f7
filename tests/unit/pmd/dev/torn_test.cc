// The words of a completion become visible in any order, and no message is lost: each form of
// completion, on an emulated card that tears them (torn=1). docs/decisions/0039
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "tests/support/env_number.hpp"
#include "tests/support/model_bus.hpp"
#include "tests/support/seed.hpp"

namespace rio::test {
namespace {

using pmd::Status;

constexpr uint32_t kIds[] = {0x11, 0x22};
constexpr uint32_t kBuffers = 32;  // of each queue, and the entries of each ring
constexpr uint32_t kBufferBytes = 4096;
constexpr uint32_t kDedicatedBytes = 64;
constexpr uint32_t kBurstMost = 20;
constexpr uint32_t kTickNs = 100;

/// How a message arrives.
enum Form : uint32_t { kShort, kLong, kDedicated, kDoorbell, kForms };

/// Messages of a card to itself. Their number says all else.
class Traffic {
 public:
  Traffic(uint64_t count, uint64_t seed) : state_(count), random_(seed) {
    model::Config config;
    config.queue_pairs = 2;
    config.pcie_seed = seed;
    config.torn = true;
    config.quirk_last_at_256 = config.quirk_last_full_256 = false;
    config.dedicated_size_log2 = 3;
    bus_ = std::make_unique<ModelBus>(config, model::make_loop_wire(), &clock_, kTickNs);
  }

  /// Sends and receives all of them.
  void run() {
    ASSERT_NO_FATAL_FAILURE(open());
    for (uint32_t idle = 0; idle < 1'000'000 && left_ != 0; ++idle) {
      const uint64_t before = left_;
      send();
      receive();
      idle = left_ != before ? 0 : idle;
    }
    for (auto& pair : pairs_) {
      wrong += pair->tx().stats().bad_completions + pair->shared().stats().bad_completions;
      ASSERT_EQ(pair->stop(), 0);
    }
    wrong += static_cast<uint64_t>(std::count_if(
        state_.begin(), state_.end(), [](uint8_t state) { return state != (kSent | kReceived); }));
  }
  /// Messages that are missing, came twice, or have a wrong field.
  uint64_t wrong = 0;

 private:
  static constexpr uint8_t kSent = 1;
  static constexpr uint8_t kReceived = 2;

  void open() {
    pmd::CardConfig config;
    config.dest_ids = {kIds[0], kIds[1]};
    ASSERT_EQ(pmd::Card::open(*bus_, config, &card_), 0);
    for (uint32_t q = 0; q < 2; ++q) {
      pmd::QueuePairConfig rings;
      rings.tx_log2 = rings.shared_log2 = rings.dedicated_log2 = rings.doorbell_log2 = 5;
      rings.start_index = 0xFFFFFF00;
      rings.receive_times = q == 1;
      ASSERT_EQ(card_->open_queue_pair(q, rings, &pairs_[q]), 0);
    }
    ASSERT_EQ(pairs_[0]->open_dedicated(0, kIds[0], 0, &dedicated_), 0);
    ASSERT_EQ(bus_->dma_alloc(size_t{3} * kBuffers * kBufferBytes, 4096, &memory_), 0);
    for (uint32_t b = 0; b < 3 * kBuffers; ++b) {
      post(b);
    }
  }
  /// Posts a buffer: the first third to the queue of short completions, and so on.
  void post(uint64_t b) {
    const uint64_t iova = memory_.iova + b * kBufferBytes;
    const pmd::RxBuffer buffer{iova, b};
    const pmd::DedicatedEntry entry{iova, b, kDedicatedBytes};
    posted_[b] = true;
    const uint16_t took = b / kBuffers == kDedicated
                              ? dedicated_->post(&entry, 1)
                              : pairs_[b / kBuffers]->shared().post(&buffer, 1);
    wrong += took == 1 ? 0 : 1;  // the ring lost the buffer's entry
  }

  static uint32_t sender(uint64_t number) {
    return number % kForms == kDedicated ? 0 : number / kForms % 2;
  }
  static uint16_t length(uint64_t number) {
    return number % kForms == kDedicated ? kDedicatedBytes
                                         : static_cast<uint16_t>(8 * (1 + number % 13));
  }
  static uint8_t mbox(uint64_t number) {
    return number % kForms == kDedicated ? 0 : static_cast<uint8_t>(4 + number % 60);
  }

  void send() {
    for (uint64_t end = next_ + random_.below(kBurstMost); next_ != std::min(end, count());
         ++next_) {
      uint64_t words[14];
      std::fill(std::begin(words), std::end(words), next_);
      pmd::TxMessage message{.data = words,
                             .cookie = next_,
                             .dest_id = kIds[next_ % kForms == kLong ? 1 : 0],
                             .length_bytes = length(next_),
                             .mbox = mbox(next_),
                             .flags = pmd::TxFlags::kInline};
      if (next_ % kForms == kDoorbell) {
        message.info = next_ / kForms & 0xFFFF;
        message.flags = pmd::TxFlags::kDoorbell;
      }
      if (pairs_[sender(next_)]->tx().burst(&message, 1) != 1) {
        break;
      }
    }
    pmd::TxDone done[kBurstMost];
    for (auto& pair : pairs_) {
      for (uint32_t n = pair->tx().reap(done, burst()); n-- != 0;) {
        note(done[n].cookie, kSent, done[n].status == Status::kOk && is_now(done[n].time_ticks));
      }
    }
  }

  void receive() {
    pmd::RxMessage got[kBurstMost];
    for (uint32_t q = 0; q < 2; ++q) {
      for (uint32_t n = pairs_[q]->shared().burst(got, burst()); n-- != 0;) {
        const pmd::RxMessage& m = got[n];
        const uint64_t number = take(m.cookie, q);
        const bool right = m.dest_id == kIds[q] && m.mbox == mbox(number) && m.segments == 1 &&
                           m.status == Status::kOk && m.arrival - arrivals_[q] + 64 < 128 &&
                           (q == 0 || is_now(m.time_ticks));
        ++arrivals_[q];
        note(number, kReceived, right && fits(number, m.source, m.length_bytes));
      }
    }
    receive_plain();
    pmd::EntryDone done[kBurstMost];
    for (uint32_t n = dedicated_->reap(done, burst()); n-- != 0;) {
      const uint64_t number = take(done[n].cookie, kDedicated);
      note(number, kReceived, done[n].status == Status::kOk && done[n].bytes == kDedicatedBytes);
    }
    pmd::DoorbellEvent rung[kBurstMost];
    for (uint32_t n = pairs_[0]->doorbells().burst(rung, burst()), i = 0; i < n;
         ++i, ++doorbells_) {
      const auto ahead = static_cast<int16_t>(rung[i].info - doorbells_);
      const uint64_t number = (doorbells_ + static_cast<uint64_t>(ahead)) * kForms + kDoorbell;
      note(number, kReceived,
           rung[i].dest_id == kIds[0] && is_now(rung[i].time_ticks) &&
               rung[i].source == kIds[sender(number)]);
    }
  }

  /// Receives short completions as lib/msg does.
  void receive_plain() {
    using Plain = pmd::SharedRxQueue::Plain;
    pmd::SharedRxQueue& shared = pairs_[0]->shared();
    std::vector<Plain> got;
    Plain one{};
    if (shared.alone(&one)) {
      shared.pass(one);
      got.push_back(one);
    }
    for (const uint32_t source : kIds) {
      static_cast<void>(shared.for_each_plain(source, random_.below(4),
                                              [&](uint64_t cookie, uint32_t length_bytes) {
                                                if (length_bytes > regs::kMessageBytesMax) {
                                                  return false;
                                                }
                                                got.push_back({cookie, source, length_bytes});
                                                return true;
                                              }));
    }
    for (const Plain& m : got) {
      const uint64_t number = take(m.cookie, kShort);
      ++arrivals_[0];
      note(number, kReceived, fits(number, m.source, m.length_bytes));
    }
  }

  /// Number of the message in a buffer, which is posted again. @return count(): the buffer is not
  /// one that the queue has.
  uint64_t take(uint64_t cookie, uint32_t form) {
    if (cookie / kBuffers != form || !posted_[cookie]) {
      return count();
    }
    uint64_t number = 0;
    std::memcpy(&number, static_cast<uint8_t*>(memory_.va) + cookie * kBufferBytes, sizeof number);
    posted_[cookie] = false;
    post(cookie);
    return number % kForms == form ? number : count();
  }
  static bool fits(uint64_t number, uint32_t source, uint32_t length_bytes) {
    return source == kIds[sender(number)] && length_bytes == length(number);
  }
  [[nodiscard]] bool is_now(uint32_t ticks) {
    return static_cast<uint32_t>(clock_.now_ns() / kTickNs) - ticks < 100'000;
  }
  void note(uint64_t number, uint8_t what, bool right) {
    if (number >= count() || (state_[number] & what) != 0 || !right) {
      ++wrong;
      return;
    }
    state_[number] |= what;
    --left_;
  }
  [[nodiscard]] uint64_t count() const { return state_.size(); }
  uint16_t burst() { return static_cast<uint16_t>(random_.below(kBurstMost + 1)); }

  ManualClock clock_;
  std::unique_ptr<ModelBus> bus_;
  std::unique_ptr<pmd::Card> card_;
  std::unique_ptr<pmd::QueuePair> pairs_[2];
  pmd::DedicatedRxQueue* dedicated_ = nullptr;
  pmd::DmaMemory memory_;
  bool posted_[3 * kBuffers] = {};
  std::vector<uint8_t> state_;  // of each message
  base::Random random_;
  uint64_t next_ = 0;
  uint64_t left_ = 2 * state_.size();  // notes that are missing
  uint64_t doorbells_ = 0;
  uint32_t arrivals_[2] = {};
};

TEST(Torn, NoMessageIsLost) {
  const uint64_t messages = env_number("RIO_TORN_MESSAGES", 60'000);
  constexpr uint64_t kSeeds = 4;
  uint64_t wrong = 0;
  const uint64_t first = first_seed();
  for (uint64_t seed = first; seed < first + kSeeds; ++seed) {
    Traffic traffic(messages / kSeeds, seed);
    ASSERT_NO_FATAL_FAILURE(traffic.run());
    EXPECT_EQ(traffic.wrong, 0u) << "seed " << seed;
    wrong += traffic.wrong;
  }
  RecordProperty("messages", static_cast<int>(messages));
  RecordProperty("lost", static_cast<int>(wrong));
}

}  // namespace
}  // namespace rio::test
