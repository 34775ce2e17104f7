/// @file
/// Messages sent and received in one run, by flow. A flow has one sending and one receiving thread,
/// which touch different lines.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/testpmd/pattern.hpp"
#include "pmd/dev/types.hpp"

namespace rio::testpmd {

/// Numbers of a flow that have arrived, in a window, since letters may overtake each other. One
/// writer. 1 KiB, no allocation.
class SequenceTracker {
 public:
  static constexpr uint64_t kWindow = 8192;  ///< numbers that may be apart and still be told

  enum class Seen : uint8_t {
    kInOrder,
    kLate,       ///< new, but a later one came first
    kDuplicate,  ///< came before, or is so old that it cannot be told from one that did
  };

  /// Hot when verifying. @param sequence 40 bits.
  Seen accept(uint64_t sequence) {
    if (sequence >= next_) [[likely]] {
      if (sequence - next_ >= kWindow) [[unlikely]] {
        // So many were refused, as while the link is down; the sender's books find others.
        bits_.fill(0);
        next_ = sequence + 1;
      }
      while (next_ <= sequence) {
        clear(next_++);
      }
      set(sequence);
      ++unique_;
      return Seen::kInOrder;
    }
    if (next_ - sequence > kWindow || test(sequence)) {
      return Seen::kDuplicate;
    }
    set(sequence);
    ++unique_;
    return Seen::kLate;
  }

  /// One past the highest number that came.
  [[nodiscard]] uint64_t next() const { return next_; }
  /// Different numbers that came.
  [[nodiscard]] uint64_t unique() const { return unique_; }

 private:
  static constexpr uint64_t kMask = kWindow - 1;
  void set(uint64_t n) { bits_[(n & kMask) >> 6] |= uint64_t{1} << (n & 63); }
  void clear(uint64_t n) { bits_[(n & kMask) >> 6] &= ~(uint64_t{1} << (n & 63)); }
  [[nodiscard]] bool test(uint64_t n) const {
    return (bits_[(n & kMask) >> 6] >> (n & 63) & 1) != 0;
  }

  uint64_t next_ = 0;
  uint64_t unique_ = 0;
  std::array<uint64_t, kWindow / 64> bits_{};
};

/// Of a whole run.
struct VerifyTotals {
  uint64_t bytes = 0;     ///< looked at and right
  uint64_t messages = 0;  ///< received whole and right, each once
  uint64_t sent = 0;
  uint64_t lost = 0;  ///< neither received nor reported refused or in doubt
  uint64_t duplicated = 0;
  uint64_t corrupted = 0;   ///< wrong bytes, wrong length, or unknown flow
  uint64_t unrefused = 0;   ///< received though reported refused
  uint64_t late = 0;        ///< overtaken by later ones: allowed
  uint64_t refused = 0;     ///< reported so by the card: allowed
  uint64_t in_doubt = 0;    ///< of those sent
  std::string first_error;  ///< of the first corrupted message, for people
  [[nodiscard]] uint64_t errors() const { return lost + duplicated + corrupted + unrefused; }
};

/// Reset between runs by the main thread; each function names the thread that may call it.
class Verifier {
 public:
  /// Main thread. @param seed another one for each run, so that what is left over is found.
  void reset(uint64_t seed, uint32_t flows, uint32_t len_bytes, bool verify);

  [[nodiscard]] bool verifies() const { return verify_; }
  [[nodiscard]] uint64_t seed() const { return seed_; }

  /// Sender of the flow: write the next message of it. Hot when verifying. @return its number.
  uint64_t write(uint8_t* bytes, uint16_t flow, uint64_t tsc) {
    const uint64_t sequence = take_number(flow);
    fill_message(bytes, len_bytes_, seed_, {sequence, tsc, flow});
    return sequence;
  }
  /// Sender: a doorbell or a transfer that has a sequence but no bytes here.
  [[nodiscard]] uint64_t take_number(uint16_t flow) { return senders_[flow].next++; }
  /// Sender: the card reported this.
  void failed(uint16_t flow, pmd::Status status);

  /// Receiver of the flow. @param expected_flow who is meant where the message is too short to say.
  /// @param stamp TSC that it was sent at, 0 if unknown. @return it was right and new.
  bool read(const uint8_t* bytes, uint32_t landed_bytes, uint16_t expected_flow, uint64_t* stamp);
  /// Receiver: a number whose bytes were looked at elsewhere and are right.
  void got_number(uint16_t flow, uint64_t sequence, uint64_t bytes);
  [[nodiscard]] uint64_t expected(uint16_t flow) const { return receivers_[flow].seen.next(); }
  /// Receiver: a wrong message; the first one is remembered. @param what a constant.
  void note_error(uint16_t flow, const char* what, uint64_t sequence, uint32_t offset_bytes);

  /// Main thread, when all has stopped.
  [[nodiscard]] VerifyTotals totals() const;

 private:
  struct alignas(64) Sender {
    uint64_t next = 0;
    uint64_t refused = 0;
    uint64_t in_doubt = 0;
  };
  struct alignas(64) Receiver {
    SequenceTracker seen;
    uint64_t bytes = 0;
    uint64_t duplicated = 0;
    uint64_t corrupted = 0;
    uint64_t late = 0;
    const char* first_error = nullptr;  // what was wrong with the first wrong message
    uint64_t first_sequence = 0;
    uint32_t first_offset_bytes = 0;
  };

  uint64_t seed_ = 0;
  uint32_t len_bytes_ = 0;
  bool verify_ = false;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
};

}  // namespace rio::testpmd
