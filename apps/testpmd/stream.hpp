/// @file
/// A stream: the work that one thread does for one port, and its counts.
#pragma once

#include <rte_cycles.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "apps/testpmd/card_memory.hpp"
#include "apps/testpmd/histogram.hpp"
#include "apps/testpmd/options.hpp"
#include "apps/testpmd/test_port.hpp"
#include "apps/testpmd/verifier.hpp"
#include "pmd/bus/counter.hpp"

namespace rio::testpmd {

using pmd::Counter;

/// Codes of pmd::Status that fit here; others are counted as the last.
inline constexpr size_t kStatusCodes = 13;

/// Counts of a stream as it runs (Counter), or at one time (uint64_t). Bytes are payload.
template <typename Number>
struct Figures {
  Number tx_messages{};  ///< given to the card
  Number rx_messages{};  ///< received whole
  Number rx_bytes{};
  Number retries{};
  Number bytes_placed{};  ///< that the card read or wrote in place
  Number bytes_copied{};
  Number turns{};
  Number busy_turns{};                        ///< turns that moved something
  std::array<Number, kStatusCodes> status{};  ///< completions that are not OK, by status
};

/// Calls `visit(name, one's, other's)` for each figure but the statuses.
template <typename One, typename Other, typename Visit>
void each_figure(One& one, const Other& other, Visit&& visit) {
  visit("tx_messages", one.tx_messages, other.tx_messages);
  visit("rx_messages", one.rx_messages, other.rx_messages);
  visit("rx_bytes", one.rx_bytes, other.rx_bytes);
  visit("retries", one.retries, other.retries);
  visit("bytes_placed", one.bytes_placed, other.bytes_placed);
  visit("bytes_copied", one.bytes_copied, other.bytes_copied);
  visit("turns", one.turns, other.turns);
  visit("busy_turns", one.busy_turns, other.busy_turns);
}

struct alignas(64) StreamStats : Figures<Counter> {
  Counter last_busy_tsc;
  Counter violations;  ///< RunResult::violations
  void count_status(pmd::Status s) {
    const auto code = static_cast<size_t>(s);
    status[code < kStatusCodes ? code : kStatusCodes - 1].add(1);
  }
};

/// A sender's pause while the link is down: what is sent then comes back at once. One thread. Costs
/// a compare while the link is up.
class LinkPause {
 public:
  static constexpr uint64_t kPausesPerSecond = 5000;

  /// A completion that is not OK.
  void note(pmd::Status status) {
    if (status == pmd::Status::kLinkDown) {
      until_ = rte_rdtsc() + rte_get_tsc_hz() / kPausesPerSecond;
    }
  }
  [[nodiscard]] bool pausing() {
    if (until_ == 0) [[likely]] {
      return false;
    }
    until_ = rte_rdtsc() < until_ ? until_ : 0;
    return until_ != 0;
  }

 private:
  uint64_t until_ = 0;
};

/// The set-up that a mode makes streams from. Outlives them.
struct RunSetup {
  const Options& options;
  uint32_t size_bytes;
  std::span<const std::unique_ptr<TestPort>> ports;
  MessagePool& pool;
  Verifier& verifier;
};

/// TestPort whose messages come in at `port`; `port` itself where that is another process's.
[[nodiscard]] uint32_t sender_to(const RunSetup& setup, const TestPort& port);
/// How many mailboxes messages of the run's size are spread over.
[[nodiscard]] uint32_t mailboxes_for(const RunSetup& setup);

/// Polled by one thread at a time. Made by a mode, set up and torn down by the main thread while
/// no thread polls.
class Stream {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// Take memory and open what it needs, once, before turn(). @return 0, or -EINVAL with the remedy
  /// in `error`.
  [[nodiscard]] virtual int open(std::string* /*error*/) { return 0; }
  /// One round of bursts. Hot: no allocation, system call, log or lock.
  /// @param may_send false while the run drains: nothing new goes out, all that comes is taken.
  /// @return messages moved.
  virtual uint32_t turn(bool may_send) noexcept = 0;
  /// Whether no message of it is in flight.
  [[nodiscard]] virtual bool quiet() const noexcept { return in_flight_ == 0; }
  /// It has done all that --count asks for. Any thread.
  [[nodiscard]] bool finished() const { return finished_.get() != 0; }
  /// It sends; false: silence is no trouble, since others may send or not.
  [[nodiscard]] virtual bool sends() const { return true; }
  /// "port 0", for the table.
  [[nodiscard]] virtual std::string label() const { return "port " + std::to_string(port_.index); }

  StreamStats stats;
  Histogram latency;      ///< TSC ticks
  bool was_busy = false;  ///< in its last turn; the poller's own

 protected:
  /// @param port that messages come in at. @param to port that they go out of.
  Stream(const RunSetup& setup, TestPort& port, TestPort& to);
  Stream(const RunSetup& setup, TestPort& port) : Stream(setup, port, port) {}

  void set_finished() { finished_.set(1); }
  /// A message has failed. Not hot.
  void note_failure(pmd::Status status) noexcept;
  /// TSC for the probe of the receiver; 0: nothing is to be timed.
  [[nodiscard]] uint64_t probe_tsc() const {
    return probe_ != nullptr && probe_->idle() ? rte_rdtsc() : 0;
  }
  /// A burst was sent.
  void count_sent(uint32_t n) {
    left_ -= left_ == UINT64_MAX ? 0 : n;
    in_flight_ += n;
    stats.tx_messages.add(n);
  }
  /// Reap up to `n` messages that were sent. `failed(TxDone)` is called for each that failed. Hot.
  /// @return how many.
  template <typename Failed>
  uint32_t reap_sent(pmd::TxQueue& queue, pmd::TxDone* done, uint16_t n, Failed&& failed) {
    const uint32_t reaped = queue.reap(done, n);
    if (reaped == 0) {
      return 0;
    }
    uint32_t retries = 0;
    for (uint32_t i = 0; i < reaped; ++i) {
      retries += done[i].retries;
      if (done[i].status != pmd::Status::kOk) [[unlikely]] {
        note_failure(done[i].status);
        failed(done[i]);
      }
    }
    in_flight_ -= reaped;
    stats.retries.add(retries);
    return reaped;
  }
  /// One received message: checked if the run verifies, its latency noted. Hot when verifying.
  /// @return whether it counts as received.
  bool take_message(const pmd::RxMessage& message, uint64_t now_tsc) {
    if (message.status != pmd::Status::kOk) [[unlikely]] {
      stats.count_status(message.status);
      return false;
    }
    uint64_t stamp = 0;
    if (verifier_.read(pool_.va(message.cookie), message.length_bytes, expected_flow_, &stamp) &&
        stamp != 0 && now_tsc > stamp) {
      latency.add(now_tsc - stamp);
    }
    return true;
  }

  TestPort& port_;
  MessagePool& pool_;
  Verifier& verifier_;
  LatencyProbe* probe_;  ///< of the receiver; null if it is elsewhere
  const uint32_t size_bytes_;
  const uint32_t offset_bytes_;
  const uint16_t burst_;
  const uint16_t flow_;     ///< of what is sent
  uint16_t expected_flow_;  ///< of what comes in, where messages are too short to say
  uint64_t left_;           ///< messages of --count; UINT64_MAX: no limit
  uint32_t in_flight_ = 0;
  LinkPause pause_;

 private:
  Counter finished_;
};

}  // namespace rio::testpmd
