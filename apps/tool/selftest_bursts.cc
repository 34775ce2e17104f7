// The step with whole rings of messages.
#include <algorithm>
#include <array>
#include <cstring>

#include "apps/tool/selftest_loop.hpp"
#include "pmd/dev/names.hpp"

namespace rio::tool {
namespace {

constexpr uint32_t kEntries = SelftestBench::kBurstEntries;
constexpr uint32_t kLenStep = 8;                         // each message of a burst has its length
constexpr uint32_t kTxBytes = kEntries * kLenStep;       // room of the longest one
constexpr uint32_t kStartIndex = UINT32_MAX - kEntries;  // indices wrap in the second burst
static_assert(kEntries * kTxBytes == SelftestBench::kBurstTxPages * SelftestBench::kPageBytes);

MessageTrial trial_of(uint32_t round, uint32_t i) {
  return {.number = uint64_t{round} * kEntries + i,
          .len_bytes = (i + 1) * kLenStep,
          .mbox = static_cast<uint8_t>(i % regs::kMultiMailboxes)};
}

/// Bursts that fill the transmit ring, with a buffer posted for each message.
class Bursts {
 public:
  Bursts(SelftestBench& bench, SelftestLoop& loop) : bench_(bench), loop_(loop) {}

  /// @return what is wrong, or empty.
  [[nodiscard]] std::string run(uint32_t round) {
    came_.fill(false);
    sent_ = received_ = 0;
    std::string wrong = post();
    wrong = wrong.empty() ? send(round) : wrong;
    return wrong.empty() ? bench_.wait("a burst of " + std::to_string(kEntries) + " messages",
                                       [&](std::string* error) {
                                         *error = reap();
                                         *error = error->empty() ? receive(round) : *error;
                                         return sent_ == kEntries && received_ == kEntries;
                                       })
                         : wrong;
  }

 private:
  [[nodiscard]] std::string post() {
    std::array<pmd::RxBuffer, kEntries> buffers;
    for (uint32_t i = 0; i < kEntries; ++i) {
      buffers[i] = {bench_.iova(SelftestBench::kBurstRxPage + i), i};
    }
    std::memset(bench_.va(SelftestBench::kBurstRxPage), Image::kPoison,
                size_t{kEntries} * SelftestBench::kPageBytes);
    const uint32_t posted = loop_.pair().shared().post(buffers.data(), kEntries);
    return posted == kEntries ? ""
                              : "a shared queue of " + std::to_string(kEntries) + " takes " +
                                    std::to_string(posted) + " buffers";
  }

  [[nodiscard]] std::string send(uint32_t round) {
    std::array<pmd::TxMessage, kEntries> messages{};
    for (uint32_t i = 0; i < kEntries; ++i) {
      const MessageTrial trial = trial_of(round, i);
      bench_.fill(bench_.va(SelftestBench::kBurstTxPage) + size_t{i} * kTxBytes, trial.len_bytes,
                  trial.number);
      messages[i] = {.iova = bench_.iova(SelftestBench::kBurstTxPage) + uint64_t{i} * kTxBytes,
                     .cookie = i,
                     .dest_id = bench_.config().dest_id,
                     .length_bytes = static_cast<uint16_t>(trial.len_bytes),
                     .mbox = trial.mbox,
                     .flags = 0};
    }
    const uint32_t taken = loop_.pair().tx().burst(messages.data(), kEntries);
    if (taken != kEntries) {
      return "an empty ring of " + std::to_string(kEntries) + " takes " + std::to_string(taken) +
             " messages: " + pmd::name(loop_.pair().tx().last_reject());
    }
    // None was reaped, so that the ring is full whatever the card has done.
    return loop_.pair().tx().burst(messages.data(), 1) == 0 ? "" : "a full ring takes one more";
  }

  [[nodiscard]] std::string reap() {
    std::array<pmd::TxDone, kEntries> done{};
    const uint32_t n = loop_.pair().tx().reap(done.data(), kEntries);
    for (uint32_t i = 0; i < n; ++i) {
      if (done[i].status != pmd::Status::kOk) {
        return "message " + std::to_string(done[i].cookie) + " of a burst ended with '" +
               pmd::name(done[i].status) + "'";
      }
    }
    sent_ += n;
    return "";
  }

  [[nodiscard]] std::string receive(uint32_t round) {
    std::array<pmd::RxMessage, kEntries> got{};
    const uint32_t n = loop_.pair().shared().burst(got.data(), kEntries);
    for (uint32_t i = 0; i < n; ++i) {
      if (std::string wrong = check(round, got[i]); !wrong.empty()) {
        return wrong;
      }
    }
    received_ += n;
    return "";
  }

  /// Messages of several mailboxes may overtake each other: the length says which one it is.
  [[nodiscard]] std::string check(uint32_t round, const pmd::RxMessage& got) {
    const uint32_t i = got.length_bytes / kLenStep - 1;
    if (got.status != pmd::Status::kOk || got.length_bytes % kLenStep != 0 || i >= kEntries ||
        came_[i] || got.mbox != trial_of(round, i).mbox || got.cookie >= kEntries) {
      return "a message of a burst came with '" + std::string(pmd::name(got.status)) + "', " +
             std::to_string(got.length_bytes) + " bytes, mailbox " + std::to_string(got.mbox) +
             (i < kEntries && came_[i] ? ", twice" : "");
    }
    came_[i] = true;
    const auto page = SelftestBench::kBurstRxPage + static_cast<uint32_t>(got.cookie);
    const Image image = loop_.landing(trial_of(round, i), SelftestBench::kPageBytes);
    const std::string differs = image.compare(bench_.va(page));
    return differs.empty() ? "" : "message " + std::to_string(i) + " of a burst: " + differs;
  }

  SelftestBench& bench_;
  SelftestLoop& loop_;
  std::array<bool, kEntries> came_{};  ///< by message
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
};

}  // namespace

Verdict test_bursts(SelftestBench& bench) {
  if (!bench.no_loop.empty()) {
    return skip(bench.no_loop);
  }
  SelftestLoop loop(bench);
  pmd::QueuePairConfig queues;
  queues.tx_log2 = queues.shared_log2 = SelftestBench::kBurstLog2;
  queues.start_index = kStartIndex;
  std::string wrong = loop.open(queues);
  Bursts bursts(bench, loop);
  const uint32_t rounds = bench.config().quick ? 8 : 256;
  for (uint32_t round = 0; wrong.empty() && round < rounds; ++round) {
    wrong = bursts.run(round);
    bench.tell("bursts", uint64_t{round + 1} * kEntries, uint64_t{rounds} * kEntries);
  }
  wrong = wrong.empty() ? loop.close() : wrong;
  const uint64_t bytes = uint64_t{rounds} * kLenStep * kEntries * (kEntries + 1) / 2;
  return wrong.empty() ? pass(uint64_t{rounds} * kEntries, "messages", bytes) : fail(wrong);
}

}  // namespace rio::tool
