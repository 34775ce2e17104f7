/// @file
/// Receive-side scaling in software: chooses the receive queue of a frame.
#pragma once

#include <array>
#include <cstdint>

namespace rio::pmd {

/// RSS settings, which the control path may change while frames are received. In memory of all
/// processes.
class Rss {
 public:
  static constexpr uint32_t kKeyBytes = 40;
  static constexpr uint32_t kTable = 128;

  Rss();
  /// Set the key. @param key kKeyBytes bytes.
  void set_key(const uint8_t* key);
  [[nodiscard]] const uint8_t* key() const { return key_.data(); }
  /// Fill the table with queues in turn.
  void spread(uint16_t queues);

  /// Toeplitz hash of addresses and ports. @param frame foreign bytes. @return 0: nothing in it is
  /// hashed.
  [[nodiscard]] uint32_t hash(const uint8_t* frame, uint32_t length_bytes) const;
  [[nodiscard]] uint16_t queue_of(uint32_t hash) const { return table[hash % kTable]; }

  /// All types that can be hashed.
  static const uint64_t kTypes;
  /// The types that are: RTE_ETH_RSS_…; 0: none, all frames go to the first queue.
  uint64_t types = 0;
  /// Queues, by the lowest bits of the hash.
  std::array<uint16_t, kTable> table{};

 private:
  std::array<uint8_t, kKeyBytes> key_;
  std::array<uint32_t, kKeyBytes / 4> words_;  // of the key, as rte_softrss_be() wants them
};

}  // namespace rio::pmd
