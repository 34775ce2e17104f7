/// @file
/// One queue pair sends to another, or to itself, and every byte is compared.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/selftest/pattern.hpp"

namespace rio::selftest {

/// The fault that a test has found. It ends a step: the tests throw it, run() and try_all() catch
/// it.
struct Fault : std::runtime_error {
  /// @param why -ENODEV: the card is gone; -ETIMEDOUT: nothing moved; -EIO: anything else.
  explicit Fault(const std::string& text, int why = -EIO) : std::runtime_error(text), rc(why) {}
  int rc;
};
/// Throw `what` and the text of an error, unless there is none. @param rc 0 or -errno.
void check(int rc, const std::string& what);

/// A queue pair that takes part in an exchange, with memory of its own. The caller opens and closes
/// it.
struct End {
  static constexpr uint32_t kPageBytes = 4096;
  static constexpr uint32_t kTxPage = 0;  ///< what is sent; 2 pages
  static constexpr uint32_t kRxPage = 2;  ///< where it lands; 2 pages
  static constexpr uint32_t kBurstLog2 = 6;
  static constexpr uint32_t kBurstEntries = 1u << kBurstLog2;  ///< of the rings of try_bursts()
  static constexpr uint32_t kBurstTxPage = 4;                  ///< what it sends
  static constexpr uint32_t kBurstTxPages = 8;
  static constexpr uint32_t kBurstRxPage = kBurstTxPage + kBurstTxPages;  ///< a page for each
  static constexpr size_t kMemoryBytes = size_t{kBurstRxPage + kBurstEntries} * kPageBytes;

  pmd::Card* card = nullptr;
  pmd::QueuePair* pair = nullptr;
  pmd::PollHook hook;     ///< of the queue pair
  uint32_t dest_id = 0;   ///< of the queue pair
  pmd::DmaMemory memory;  ///< kMemoryBytes, aligned to a page
  [[nodiscard]] uint8_t* va(uint32_t page) const {
    return static_cast<uint8_t*>(memory.va) + size_t{page} * kPageBytes;
  }
  [[nodiscard]] uint64_t iova(uint32_t page) const {
    return memory.iova + uint64_t{page} * kPageBytes;
  }
};

/// The expected content of a range of memory: a byte, or kAnything.
class Image {
 public:
  static constexpr uint8_t kPoison = 0xA5;  ///< what memory holds before something lands
  static constexpr int16_t kAnything = -1;

  explicit Image(uint32_t len_bytes) : bytes_(len_bytes, kPoison) {}
  /// Bytes [from, from + len_bytes) of a pattern at `to`, and behind them zeros up to
  /// `padded_bytes`.
  void put(const Pattern& pattern, uint32_t from, uint32_t to, uint32_t len_bytes,
           uint32_t padded_bytes);
  void anything(uint32_t to, uint32_t len_bytes);
  /// @return "byte 5 is 0x12, not 0x34", or empty. @param bytes as many as the image has.
  [[nodiscard]] std::string compare(const uint8_t* bytes) const;
  /// Throw what compare() says about the bytes of `what`, unless they are the image's.
  void check(const uint8_t* bytes, const std::string& what) const;
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }

 private:
  std::vector<int16_t> bytes_;
};

/// A message to try.
struct MessageTrial {
  uint64_t number;     ///< picks its bytes
  uint32_t len_bytes;  ///< 1 to 4096
  uint32_t ssize_bytes = 256;
  uint8_t mbox = 0;
  bool is_inline = false;  ///< the bytes are in the descriptor
  [[nodiscard]] uint32_t segments() const { return (len_bytes + ssize_bytes - 1) / ssize_bytes; }
};

/// How an exchange is run.
struct Rules {
  uint64_t seed = 1;             ///< of the bytes
  uint32_t patience_ms = 10000;  ///< nothing moves for so long: it failed
  /// Responses that may stay away: on a busy machine an emulated card may stop for longer than its
  /// response time-out. The message has to arrive all the same.
  uint32_t doubts_max = 0;
};

/// Counts what was tried. One thread.
struct Tally {
  /// Told after each thing; may be empty. @param total 0 where it is not known.
  std::function<void(uint64_t done, uint64_t total)> tell{};
  uint64_t done = 0;
  uint64_t bytes = 0;  ///< that were compared
  void add(uint64_t things, uint64_t more_bytes = 0, uint64_t total = 0) {
    done += things;
    bytes += more_bytes;
    if (tell) {
      tell(done, total);
    }
  }
};

/// Sends from one end to the other. Functions throw the fault that they find. One thread.
class Exchange {
 public:
  /// @param from, to, tally outlive it. `from` and `to` may be the same.
  Exchange(const End& from, const End& to, const Rules& rules, Tally& tally)
      : from_(from), to_(to), rules_(rules), tally_(tally) {}

  /// Send a message through the shared queue, and compare every byte of the buffer.
  void message(const MessageTrial& trial);
  /// Send a message through dedicated queue `index`, which is open for mailbox trial.mbox, and
  /// compare every byte of the entry.
  void dedicated(uint32_t index, const MessageTrial& trial);
  void doorbell(uint16_t info);
  /// Send a message to any destID and wait for its completion. @param what for messages.
  void send(const pmd::TxMessage& message, const std::string& what);
  /// A DMA request to the other end, until its completion.
  void remote(const pmd::DmaRequest& request, const std::string& what);
  /// Reap up to `count` completions of messages. @return how many there were.
  [[nodiscard]] uint32_t reap(uint32_t count);

  /// Where a message lands by the contract and the card's quirks (docs/card.md, Receiving).
  /// @param len_bytes of the memory that is compared.
  [[nodiscard]] Image landing(const MessageTrial& trial, uint32_t len_bytes) const;
  /// Call `poll` until it returns true, and let both cards work. Throws also if `what` did not come
  /// within the patience, or a card is gone.
  void wait(const std::string& what, const std::function<bool()>& poll);

  [[nodiscard]] const End& from() const { return from_; }
  [[nodiscard]] const End& to() const { return to_; }
  /// For the callers: these functions count nothing.
  [[nodiscard]] Tally& tally() { return tally_; }
  [[nodiscard]] Pattern pattern(uint64_t number) const { return {rules_.seed, number}; }

 private:
  [[nodiscard]] pmd::TxMessage prepare(const MessageTrial& trial);
  void post_tx(const pmd::TxMessage& message, const std::string& what);
  void transfer(const pmd::TxMessage& message, const std::string& what,
                const std::function<bool()>& take);
  [[nodiscard]] bool reap_one(const std::string& what);
  [[nodiscard]] bool is_good(pmd::Status status);

  const End& from_;
  const End& to_;
  const Rules rules_;
  Tally& tally_;
  uint32_t doubts_ = 0;
};

}  // namespace rio::selftest
