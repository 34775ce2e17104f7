/// @file
/// One queue pair sends to another, or to itself, and every byte is compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/selftest/pattern.hpp"

namespace rio::selftest {

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
};

/// How an exchange is run.
struct Rules {
  uint64_t seed = 1;             ///< of the bytes
  uint32_t patience_ms = 10000;  ///< nothing moves for so long: it failed
  /// Responses that may stay away: on a busy machine an emulated card may stop for longer than its
  /// response time-out. The message has to arrive all the same.
  uint32_t doubts_max = 0;
};

/// Sends from one end to the other. Functions return what is wrong, or empty. One thread.
class Exchange {
 public:
  /// @param from, to outlive it; they may be the same.
  Exchange(const End& from, const End& to, const Rules& rules)
      : from_(from), to_(to), rules_(rules) {}

  /// Send a message through the shared queue, and compare every byte of the buffer.
  [[nodiscard]] std::string message(const MessageTrial& trial);
  /// Send a message through dedicated queue `queue`, which is open for mailbox trial.mbox, and
  /// compare every byte of the entry.
  [[nodiscard]] std::string dedicated(pmd::DedicatedRxQueue& queue, const MessageTrial& trial);
  [[nodiscard]] std::string doorbell(uint16_t info);
  /// Send a message to any destID and wait for its completion. @param what for messages.
  [[nodiscard]] std::string send(const pmd::TxMessage& message, const std::string& what);
  /// A DMA request to the other end, until its completion.
  [[nodiscard]] std::string remote(const pmd::DmaRequest& request, const std::string& what);
  /// Reap up to `count` completions of messages. @param reaped how many there were.
  [[nodiscard]] std::string reap(uint32_t count, uint32_t* reaped);

  /// Where a message lands by the contract and the card's quirks (docs/card.md, Receiving).
  /// @param len_bytes of the memory that is compared.
  [[nodiscard]] Image landing(const MessageTrial& trial, uint32_t len_bytes) const;
  /// Calls `poll` until it returns true or says what is `wrong`, and lets both cards work.
  /// @return what poll said, or that `what` did not come, or that a card is gone.
  [[nodiscard]] std::string wait(const std::string& what,
                                 const std::function<bool(std::string* wrong)>& poll);

  [[nodiscard]] const End& from() const { return from_; }
  [[nodiscard]] const End& to() const { return to_; }
  [[nodiscard]] Pattern pattern(uint64_t number) const { return {rules_.seed, number}; }
  /// A card has gone.
  [[nodiscard]] bool gone() const { return gone_; }
  /// Something did not come within the patience.
  [[nodiscard]] bool stalled() const { return stalled_; }

 private:
  [[nodiscard]] pmd::TxMessage prepare(const MessageTrial& trial);
  [[nodiscard]] std::string post_tx(const pmd::TxMessage& message, const std::string& what);
  [[nodiscard]] std::string transfer(const pmd::TxMessage& message, const std::string& what,
                                     const std::function<bool()>& take);
  [[nodiscard]] bool reap_one(const std::string& what, bool* sent, std::string* wrong);
  [[nodiscard]] bool is_good(pmd::Status status);
  [[nodiscard]] std::string check_landing(const MessageTrial& trial, const std::string& what) const;

  const End& from_;
  const End& to_;
  const Rules rules_;
  uint32_t doubts_ = 0;
  bool gone_ = false;
  bool stalled_ = false;
};

}  // namespace rio::selftest
