/// @file
/// A stream: what one thread polls for one port, and what it has counted.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "apps/testpmd/histogram.hpp"
#include "pmd/bus/counter.hpp"
#include "pmd/dev/types.hpp"

namespace rio::testpmd {

using pmd::Counter;

/// Codes of pmd::Status that fit here; others are counted as the last.
inline constexpr size_t kStatusCodes = 12;

/// Counts of a stream. Bytes are payload.
struct alignas(64) StreamStats {
  Counter tx_messages;  ///< given to the card
  Counter tx_done;      ///< completed, however
  Counter rx_messages;  ///< received whole
  Counter rx_bytes;
  Counter bytes_placed;  ///< by the alignment plans
  Counter bytes_copied;
  Counter retries;
  Counter busy_turns;  ///< turns that moved something
  Counter turns;
  Counter last_busy_tsc;
  std::array<Counter, kStatusCodes> status;  ///< completions that are not OK, by status
  void count_status(pmd::Status s) {
    const auto code = static_cast<size_t>(s);
    status[code < kStatusCodes ? code : kStatusCodes - 1].add(1);
  }
};

/// Polled by one thread at a time. Made by a mode, set up and torn down by the main thread while
/// no thread polls.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// One round of bursts. Hot: no allocation, system call, log or lock.
  /// @param may_send false while the run drains: nothing new goes out, all that comes is taken.
  /// @return messages moved.
  virtual uint32_t turn(bool may_send) noexcept = 0;
  /// Nothing of it is in flight.
  [[nodiscard]] virtual bool quiet() const noexcept = 0;
  /// It has done all that --count asks for. Any thread.
  [[nodiscard]] bool finished() const { return finished_.get() != 0; }
  /// It sends; false: silence is no trouble, since others may send or not.
  [[nodiscard]] virtual bool sends() const { return true; }
  /// "port 0", for the table.
  [[nodiscard]] virtual std::string label() const = 0;
  /// TestPort that the stream's messages come in at.
  [[nodiscard]] virtual uint32_t port_index() const = 0;

  StreamStats stats;
  Histogram latency;      ///< TSC ticks
  bool was_busy = false;  ///< in its last turn; the poller's own

 protected:
  void set_finished() { finished_.set(1); }

 private:
  Counter finished_;
};

}  // namespace rio::testpmd
