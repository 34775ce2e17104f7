/// @file
/// Limits the bytes under way to a peer: NewReno in bytes (RFC 6582, with the accounting of RFC
/// 9002), and the time-out of RFC 6298. Fair beside TCP.
#pragma once

#include <cstdint>

namespace rio::wire::udp {

/// Used by one thread. Both lanes to a peer share one. Times are of any monotonic clock.
class Congestion {
 public:
  /// @param datagram_bytes the longest payload that the path carries, at least 1.
  explicit Congestion(uint32_t datagram_bytes);

  /// Whether so many more bytes may be sent now. One datagram may always be sent if none is under
  /// way.
  [[nodiscard]] bool may_send(uint32_t bytes) const {
    return under_way_ == 0 || under_way_ + bytes <= window_;
  }
  void on_sent(uint32_t bytes) { under_way_ += bytes; }
  /// Bytes last sent at `sent_ns` have arrived.
  void on_acked(uint32_t bytes, uint64_t sent_ns);
  /// Bytes last sent at `sent_ns` were lost. Losses of one window count once.
  void on_lost(uint32_t bytes, uint64_t sent_ns, uint64_t now_ns);
  /// Nothing was heard for timeout_ns(): restart with one datagram, and wait twice as long.
  void on_timeout(uint64_t now_ns);
  /// The round-trip time of a datagram that was sent only once.
  void on_round_trip(uint64_t ns);

  /// How long to wait for an answer: 10 ms to 2 s.
  [[nodiscard]] uint64_t timeout_ns() const;
  [[nodiscard]] uint64_t window_bytes() const { return window_; }
  [[nodiscard]] uint64_t under_way_bytes() const { return under_way_; }

 private:
  const uint32_t datagram_;
  uint64_t window_;
  uint64_t threshold_ = UINT64_MAX;  // above it, the window grows by one datagram per round trip
  uint64_t under_way_ = 0;
  uint64_t acked_ = 0;       // towards the next growth
  uint64_t recover_ns_ = 0;  // losses of datagrams sent before this have reduced the window already
  bool reduced_ = false;     // recover_ns_ is set
  uint64_t smooth_ns_ = 0;   // 0: no round trip yet
  uint64_t deviation_ns_ = 0;
  uint32_t doublings_ = 0;
};

}  // namespace rio::wire::udp
