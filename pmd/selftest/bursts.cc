// Whole rings of messages.
#include <algorithm>
#include <array>
#include <cstring>

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

  /// @return what is wrong, or empty.
  [[nodiscard]] std::string run(uint32_t round) {
    came_.fill(false);
    sent_ = received_ = 0;
    std::string wrong = post();
    wrong = wrong.empty() ? send(round) : wrong;
    return wrong.empty() ? exchange_.wait("a burst of " + std::to_string(kEntries) + " messages",
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
      buffers[i] = {exchange_.to().iova(End::kBurstRxPage + i), i};
    }
    std::memset(exchange_.to().va(End::kBurstRxPage), Image::kPoison,
                size_t{kEntries} * End::kPageBytes);
    const uint32_t posted = exchange_.to().pair->shared().post(buffers.data(), kEntries);
    return posted == kEntries ? ""
                              : "a shared queue of " + std::to_string(kEntries) + " takes " +
                                    std::to_string(posted) + " buffers";
  }

  [[nodiscard]] std::string send(uint32_t round) {
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
      return "an empty ring of " + std::to_string(kEntries) + " takes " + std::to_string(taken) +
             " messages: " + pmd::name(exchange_.from().pair->tx().last_reject());
    }
    // None was reaped, so that the ring is full whatever the card has done.
    return exchange_.from().pair->tx().burst(messages.data(), 1) == 0
               ? ""
               : "a full ring takes one more";
  }

  [[nodiscard]] std::string reap() {
    uint32_t n = 0;
    std::string wrong = exchange_.reap(kEntries, &n);
    sent_ += n;
    return wrong;
  }

  [[nodiscard]] std::string receive(uint32_t round) {
    std::array<pmd::RxMessage, kEntries> got{};
    const uint32_t n = exchange_.to().pair->shared().burst(got.data(), kEntries);
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
    const auto page = End::kBurstRxPage + static_cast<uint32_t>(got.cookie);
    const Image image = exchange_.landing(trial_of(round, i), End::kPageBytes);
    const std::string differs = image.compare(exchange_.to().va(page));
    return differs.empty() ? "" : "message " + std::to_string(i) + " of a burst: " + differs;
  }

  Exchange& exchange_;
  std::array<bool, kEntries> came_{};  ///< by message
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
};

}  // namespace

std::string try_bursts(Exchange& exchange, uint32_t rounds, Tally* tally) {
  Bursts bursts(exchange);
  std::string wrong;
  for (uint32_t round = 0; wrong.empty() && round < rounds; ++round) {
    wrong = bursts.run(round);
    tally->add(kEntries, kLenStep * kEntries * (kEntries + 1) / 2, rounds * kEntries);
  }
  return wrong;
}

}  // namespace rio::selftest
