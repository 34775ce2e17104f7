// Messages, one by one and in bursts that fill the ring; doorbells, dedicated queues.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "pmd/dev/names.hpp"
#include "pmd/selftest/parts.hpp"

namespace rio::selftest {
namespace {

constexpr uint32_t kEntries = End::kBurstEntries;
constexpr uint32_t kLenStep = 8;                    // each message of a burst has its length
constexpr uint32_t kTxBytes = kEntries * kLenStep;  // room of the longest one
static_assert(kEntries * kTxBytes == End::kBurstTxPages * End::kPageBytes);

MessageTrial trial_of(uint32_t round, uint32_t i) {
  return {.number = uint64_t{round} * kEntries + i,
          .len_bytes = (i + 1) * kLenStep,
          .mbox = static_cast<uint8_t>(i % regs::kMultiMailboxes)};
}

/// Bursts that fill the transmit ring, with a buffer posted for each message.
class Bursts {
 public:
  explicit Bursts(Exchange& exchange) : exchange_(exchange) {}

  void run(uint32_t round) {
    came_.fill(false);
    sent_ = received_ = 0;
    post();
    send(round);
    exchange_.wait("a burst of " + std::to_string(kEntries) + " messages", [&] {
      sent_ += exchange_.reap(kEntries);
      receive(round);
      return sent_ == kEntries && received_ == kEntries;
    });
  }

 private:
  void post() {
    std::array<pmd::RxBuffer, kEntries> buffers;
    for (uint32_t i = 0; i < kEntries; ++i) {
      buffers[i] = {exchange_.to().iova(End::kBurstRxPage + i), i};
    }
    std::memset(exchange_.to().va(End::kBurstRxPage), Image::kPoison,
                size_t{kEntries} * End::kPageBytes);
    const uint32_t posted = exchange_.to().pair->shared().post(buffers.data(), kEntries);
    if (posted != kEntries) {
      throw Fault("a shared queue of " + std::to_string(kEntries) + " takes " +
                  std::to_string(posted) + " buffers");
    }
  }

  void send(uint32_t round) {
    std::array<pmd::TxMessage, kEntries> messages{};
    for (uint32_t i = 0; i < kEntries; ++i) {
      const MessageTrial trial = trial_of(round, i);
      exchange_.pattern(trial.number)
          .fill(exchange_.from().va(End::kBurstTxPage) + size_t{i} * kTxBytes, trial.len_bytes);
      messages[i] = {.iova = exchange_.from().iova(End::kBurstTxPage) + uint64_t{i} * kTxBytes,
                     .cookie = i,
                     .dest_id = exchange_.to().dest_id,
                     .length_bytes = static_cast<uint16_t>(trial.len_bytes),
                     .mbox = trial.mbox,
                     .flags = 0};
    }
    const uint32_t taken = exchange_.from().pair->tx().burst(messages.data(), kEntries);
    if (taken != kEntries) {
      throw Fault("an empty ring of " + std::to_string(kEntries) + " takes " +
                  std::to_string(taken) +
                  " messages: " + pmd::name(exchange_.from().pair->tx().last_reject()));
    }
    // None was reaped, so that the ring is full whatever the card has done.
    if (exchange_.from().pair->tx().burst(messages.data(), 1) != 0) {
      throw Fault("a full ring takes one more");
    }
  }

  void receive(uint32_t round) {
    std::array<pmd::RxMessage, kEntries> got{};
    const uint32_t n = exchange_.to().pair->shared().burst(got.data(), kEntries);
    for (uint32_t i = 0; i < n; ++i) {
      check(round, got[i]);
    }
    received_ += n;
  }

  /// Messages of several mailboxes may overtake each other: the length says which one it is.
  void check(uint32_t round, const pmd::RxMessage& got) {
    const uint32_t i = got.length_bytes / kLenStep - 1;
    if (got.status != pmd::Status::kOk || got.length_bytes % kLenStep != 0 || i >= kEntries ||
        came_[i] || got.mbox != trial_of(round, i).mbox || got.cookie >= kEntries) {
      throw Fault("a message of a burst came with '" + std::string(pmd::name(got.status)) + "', " +
                  std::to_string(got.length_bytes) + " bytes, mailbox " + std::to_string(got.mbox) +
                  (i < kEntries && came_[i] ? ", twice" : ""));
    }
    came_[i] = true;
    const auto page = End::kBurstRxPage + static_cast<uint32_t>(got.cookie);
    exchange_.landing(trial_of(round, i), End::kPageBytes)
        .check(exchange_.to().va(page), "message " + std::to_string(i) + " of a burst");
  }

  Exchange& exchange_;
  std::array<bool, kEntries> came_{};  ///< by message
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
};

}  // namespace

std::vector<uint32_t> some_lengths() {
  std::vector<uint32_t> lengths(64);
  std::iota(lengths.begin(), lengths.end(), 1);
  for (uint32_t edge = regs::kSegmentBytesMax; edge <= regs::kMessageBytesMax;
       edge += regs::kSegmentBytesMax) {
    for (const uint32_t len : {edge - 8, edge - 1, edge, edge + 1}) {
      if (len <= regs::kMessageBytesMax) {
        lengths.push_back(len);
      }
    }
  }
  return lengths;
}

std::vector<MessageTrial> length_trials(bool quick) {
  std::vector<MessageTrial> trials;
  std::vector<uint32_t> lengths(regs::kMessageBytesMax);
  std::iota(lengths.begin(), lengths.end(), 1);
  for (const uint32_t len : quick ? some_lengths() : lengths) {
    trials.push_back({.number = trials.size(),
                      .len_bytes = len,
                      .mbox = static_cast<uint8_t>(len % regs::kMultiMailboxes)});
  }
  return trials;
}

std::vector<MessageTrial> inline_trials(const pmd::Caps& caps, bool quick) {
  const uint32_t longest = caps.inline_bytes_max();
  std::vector<MessageTrial> trials;
  for (uint32_t len = 1; len <= longest; ++len) {
    for (uint32_t mbox = 0; mbox < regs::kMailboxes; mbox += quick ? 21 : 1) {
      trials.push_back({.number = trials.size(),
                        .len_bytes = len,
                        .mbox = static_cast<uint8_t>(mbox),
                        .is_inline = true});
    }
  }
  return trials;
}

std::vector<MessageTrial> segment_trials() {
  std::vector<MessageTrial> trials;
  for (uint32_t ssize = 8; ssize <= regs::kSegmentBytesMax; ssize *= 2) {
    for (uint32_t segments = 1; segments <= regs::kSegmentsMax; ++segments) {
      // The last segment whole, one byte short, and of one byte.
      for (const uint32_t len :
           {segments * ssize, segments * ssize - 1, (segments - 1) * ssize + 1}) {
        trials.push_back({.number = trials.size(),
                          .len_bytes = len,
                          .ssize_bytes = ssize,
                          .mbox = static_cast<uint8_t>(segments % regs::kMultiMailboxes)});
      }
    }
  }
  return trials;
}

void try_messages(Exchange& exchange, std::span<const MessageTrial> trials) {
  for (const MessageTrial& trial : trials) {
    exchange.message(trial);
    exchange.tally().add(1, trial.len_bytes, trials.size());
  }
}

void try_doorbells(Exchange& exchange, bool quick) {
  const uint32_t stride = quick ? 0x101 : 1;
  const auto ring = [&](uint32_t info) {
    exchange.doorbell(static_cast<uint16_t>(info));
    exchange.tally().add(1, 0, 0x10000 / stride);
  };
  for (uint32_t info = 0; info <= 0xFFFF; info += stride) {
    ring(info);
  }
  for (uint32_t bit = 0; bit < 16; ++bit) {
    ring(1u << bit);
  }
}

void try_bursts(Exchange& exchange, uint32_t rounds) {
  Bursts bursts(exchange);
  for (uint32_t round = 0; round < rounds; ++round) {
    bursts.run(round);
    exchange.tally().add(kEntries, kLenStep * kEntries * (kEntries + 1) / 2, rounds * kEntries);
  }
}

void try_dedicated(Exchange& exchange, uint32_t index, uint32_t stride) {
  const auto mbox = static_cast<uint8_t>(index % regs::kMultiMailboxes);
  const std::string name = "dedicated queue " + std::to_string(index);
  pmd::QueuePair& pair = *exchange.to().pair;
  pmd::DedicatedRxQueue* queue = nullptr;
  check(pair.open_dedicated(index, exchange.from().dest_id, mbox, &queue),
        name + " cannot be opened");
  stride = std::max(stride, exchange.to().card->caps().dedicated_size_align);
  for (uint32_t len = stride; len <= regs::kMessageBytesMax; len += stride) {
    exchange.dedicated(index,
                       {.number = exchange.tally().done + 1, .len_bytes = len, .mbox = mbox});
    exchange.tally().add(1, len);
  }
  check(pair.close_dedicated(index), name + " does not close");
}

}  // namespace rio::selftest
