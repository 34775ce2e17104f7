/// @file
/// A queue pair that talks to itself over a looped link. Internal to the selftest's steps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/tool/selftest.hpp"

namespace rio::tool {

/// The expected content of a range of memory: a byte, or kAnything.
class Image {
 public:
  static constexpr uint8_t kPoison = 0xA5;  ///< what memory holds before something lands
  static constexpr int16_t kAnything = -1;

  explicit Image(uint32_t len_bytes) : bytes_(len_bytes, kPoison) {}
  /// The bytes of thing `number` at `to`, and behind them zeros up to `padded_bytes`.
  void put(const SelftestBench& bench, uint64_t number, uint32_t from, uint32_t to,
           uint32_t len_bytes, uint32_t padded_bytes);
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

/// Functions return what is wrong, or empty. One thread.
class SelftestLoop {
 public:
  explicit SelftestLoop(SelftestBench& bench) : bench_(bench) {}
  /// Stops the rings.
  ~SelftestLoop();
  SelftestLoop(const SelftestLoop&) = delete;
  SelftestLoop& operator=(const SelftestLoop&) = delete;

  /// @param queues rings 0 means transmit, shared, doorbell, DMA, maintenance, events.
  /// @param need_link wait for the link, and fail without one.
  [[nodiscard]] std::string open(const pmd::QueuePairConfig& queues = {}, bool need_link = true);
  /// Stop the rings; once, at the end of a step.
  [[nodiscard]] std::string close();
  [[nodiscard]] pmd::QueuePair& pair() { return *pair_; }

  /// Send to the card itself through the shared queue, and compare every byte of the buffer.
  [[nodiscard]] std::string message(const MessageTrial& trial);
  /// Send through dedicated queue `queue`, which is open for mailbox trial.mbox.
  [[nodiscard]] std::string dedicated(pmd::DedicatedRxQueue& queue, const MessageTrial& trial);
  [[nodiscard]] std::string doorbell(uint16_t info);
  /// Send and wait for its end. @param what for messages.
  [[nodiscard]] std::string send(const pmd::TxMessage& message, const std::string& what);
  /// A DMA request to the card itself, to its end.
  [[nodiscard]] std::string remote(const pmd::DmaRequest& request, const std::string& what);

  /// Where a message lands by the contract and the card's quirks (docs/card.md, Receiving).
  /// @param len_bytes of the memory that is looked at.
  [[nodiscard]] Image landing(const MessageTrial& trial, uint32_t len_bytes) const;

 private:
  [[nodiscard]] pmd::TxMessage prepare(const MessageTrial& trial);
  [[nodiscard]] bool reap(const std::string& what, bool* sent, std::string* wrong);

  SelftestBench& bench_;
  std::unique_ptr<pmd::QueuePair> pair_;
};

}  // namespace rio::tool
