/// @file
/// How much each rail has to do, and how fast it does it: the expected finishing time of the policy
/// `weighted`. See docs/decisions/0045-rail-states-and-policies.md, "Rates".
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>

#include "lib/rail/rail_set.hpp"

namespace rio::rail {

/// The rails of one port in one direction: an object for what it sends, another for what it has
/// granted to peers.
///
/// The rate of a rail is learnt from completions that follow each other while the rail has much to
/// do, since a rail with little to do shows its latency and not its rate. Until then a rail counts
/// as fast as the fastest one that was learnt, less by its NUMA distance.
class RailLoads {
 public:
  /// NUMA distance of a card on the caller's own node, as hwloc and ACPI have it.
  static constexpr uint32_t kLocalDistance = 10;
  /// Bytes that a rail must have outstanding for its completions to show its rate.
  static constexpr uint64_t kBusyBytes = 16 * 1024;
  /// Bytes that must have completed for a sample of the rate.
  static constexpr uint64_t kSampleBytes = 64 * 1024;

  RailLoads();

  /// @param distance NUMA distance of the rail's card, kLocalDistance to 255.
  void set_distance(uint32_t rail, uint32_t distance);

  /// Hot. The card has taken `bytes` for a rail, or they were granted on it.
  void posted(uint32_t rail, uint64_t bytes) { rails_[rail].queued_bytes += bytes; }
  /// Hot. `bytes` of a rail were delivered. @param bytes up to queued_bytes(). @param now_ns by a
  /// clock that does not go back, above 0.
  void completed(uint32_t rail, uint64_t bytes, uint64_t now_ns);
  /// `bytes` of a rail ended without success, or were returned unsent: they say nothing about its
  /// rate. @param bytes up to queued_bytes().
  void dropped(uint32_t rail, uint64_t bytes);
  /// Set what is outstanding, for an object that is made for one choice.
  void set_queued(uint32_t rail, uint64_t bytes) { rails_[rail].queued_bytes = bytes; }
  /// The rail was away: what was learnt of it no longer counts. Its outstanding bytes stay.
  void forget(uint32_t rail);

  /// Hot. Bytes posted and not yet completed.
  [[nodiscard]] uint64_t queued_bytes(uint32_t rail) const { return rails_[rail].queued_bytes; }
  /// Hot. When a rail would have done all that it has, and `bytes` more: nanoseconds from now.
  [[nodiscard]] uint64_t finish_ns(uint32_t rail, uint64_t bytes) const {
    const Rail& r = rails_[rail];
    return (r.queued_bytes + bytes) * r.ns_per_kib >> 10;
  }
  /// The rate of a rail in KiB per second; at least 1. Only the ratio of two rails has a meaning as
  /// long as none was learnt.
  [[nodiscard]] uint32_t rate_kib_s(uint32_t rail) const;

 private:
  static constexpr uint32_t kFirstNsPerKib = 1000;

  struct Rail {
    uint64_t queued_bytes = 0;
    uint64_t ns_per_kib = kFirstNsPerKib;  // 1 to 2^32 - 1
    uint64_t last_ns = 0;       // last completion, if the rail had kBusyBytes left then; else 0
    uint64_t sample_bytes = 0;  // completed since the last sample while it had much to do,
    uint64_t sample_ns = 0;     // and in which time
    uint32_t distance = kLocalDistance;
    bool is_learnt = false;
  };

  void learn(Rail& rail);
  void guess_others();

  std::array<Rail, kRails> rails_;
};

}  // namespace rio::rail
