/// @file
/// Registers the user's memory with the card while transfers use it.
#pragma once

#include <cstdint>
#include <vector>

#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// The run of bus addresses that holds `va`. @pre the region contains `va`.
[[nodiscard]] const pmd::IovaRun* run_of(const pmd::mem::Region& region, const void* va);

/// One per port; used only on the port's thread. Transfers in the same memory share a registration.
/// On emulated cards (Bus::maps_addresses()) some unused registrations are cached, because an
/// address whose memory was freed does no harm there. Behind an IOMMU, which maps pages, each one
/// ends with its last transfer.
class Registrations {
 public:
  static constexpr uint32_t kKeptMax = 32;

  explicit Registrations(Endpoint& endpoint);
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// @return a region that contains the range, valid until put(); null: it cannot be registered.
  [[nodiscard]] const pmd::mem::Region* get(void* va, uint64_t len_bytes);
  /// Release a region of get(). @param region null: no effect.
  void put(const pmd::mem::Region* region);

  /// Number of registrations, and how many of them are unused (kept()).
  [[nodiscard]] size_t count() const { return entries_.size(); }
  [[nodiscard]] uint32_t kept() const { return kept_; }

 private:
  struct Entry {
    const pmd::mem::Region* region;
    uint32_t users;
    bool again;     // used more than once
    uint64_t used;  // last use, counted in calls of put()
  };

  struct Range {
    uint8_t* va;
    uint64_t len_bytes;
  };
  /// Registrations are joined to one of up to so many bytes.
  static constexpr uint64_t kJoinedBytesMax = 64ull << 20;

  [[nodiscard]] Range join_kept(Range range);
  void drop_oldest();

  Endpoint& endpoint_;
  uint32_t kept_max_;
  uint32_t kept_ = 0;
  uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace rio::msg
