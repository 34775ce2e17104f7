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
  /// Set the hashed types. @param types RTE_ETH_RSS_…; 0: none, all frames go to the first queue.
  void set_types(uint64_t types) { types_ = types; }
  [[nodiscard]] uint64_t types() const { return types_; }
  [[nodiscard]] uint16_t entry(uint32_t i) const { return table_[i]; }
  void set_entry(uint32_t i, uint16_t queue) { table_[i] = queue; }
  /// Fill the table with queues in turn.
  void spread(uint16_t queues);

  /// Toeplitz hash of addresses and ports. @param frame foreign bytes. @return 0: nothing in it is
  /// hashed.
  [[nodiscard]] uint32_t hash(const uint8_t* frame, uint32_t length_bytes) const;
  [[nodiscard]] uint16_t queue_of(uint32_t hash) const { return table_[hash % kTable]; }

  /// All types that set_types() knows.
  static const uint64_t kTypes;

 private:
  struct Flow;
  [[nodiscard]] bool parse(const uint8_t* frame, uint32_t length_bytes, Flow* flow) const;

  uint64_t types_ = 0;
  std::array<uint8_t, kKeyBytes> key_;
  std::array<uint32_t, kKeyBytes / 4> words_;  // of the key, as rte_softrss_be() wants them
  std::array<uint16_t, kTable> table_{};
};

}  // namespace rio::pmd
