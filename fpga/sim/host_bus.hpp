/// @file
/// The bus between a host's memory and its cards, in virtual time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rio::sim {

/// Rates of a host's bus. 1 MB/s is 1,000,000 ps a byte; a rate of 0 ps takes no time.
struct HostBusRates {
  uint32_t read_ps_per_byte = 0;   ///< cards read the host's memory; 3175: 315 MB/s
  uint32_t write_ps_per_byte = 0;  ///< cards write the host's memory; 2688: 372 MB/s

  /// Whether a transfer takes time.
  [[nodiscard]] bool any() const { return read_ps_per_byte != 0 || write_ps_per_byte != 0; }
};

/// A bus that carries one transfer at a time, in either direction, for all cards of a host, in the
/// order in which they ask: half duplex, as PCI is. One thread.
class HostBus {
 public:
  explicit HostBus(const HostBusRates& rates) : rates_(rates) {}

  /// A card reads memory. @param now_ns not before that of an earlier call. @param len_bytes data.
  /// @return when the last byte is at the card; a part of a nanosecond counts as a whole one.
  [[nodiscard]] uint64_t read(uint64_t now_ns, uint32_t len_bytes) {
    return transfer(now_ns, len_bytes, rates_.read_ps_per_byte);
  }
  /// A card writes memory; as read(). @return when the last byte is in memory.
  [[nodiscard]] uint64_t write(uint64_t now_ns, uint32_t len_bytes) {
    return transfer(now_ns, len_bytes, rates_.write_ps_per_byte);
  }
  /// Time for which the bus was or will be busy with the transfers so far.
  [[nodiscard]] uint64_t busy_ns() const { return busy_ns_; }

 private:
  [[nodiscard]] uint64_t transfer(uint64_t now_ns, uint32_t len_bytes, uint32_t ps_per_byte) {
    const uint64_t takes_ns = (uint64_t{ps_per_byte} * len_bytes + 999) / 1000;
    busy_ns_ += takes_ns;
    busy_until_ns_ = std::max(now_ns, busy_until_ns_) + takes_ns;
    return busy_until_ns_;
  }

  HostBusRates rates_;
  uint64_t busy_until_ns_ = 0;
  uint64_t busy_ns_ = 0;
};

}  // namespace rio::sim
