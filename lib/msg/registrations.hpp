/// @file
/// The user's memory as the card reaches it, for as long as transfers move it there.
#pragma once

#include <cstdint>
#include <vector>

#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// The run of a region that `va` is in. @pre it is in the region.
[[nodiscard]] const pmd::IovaRun* run_of(const pmd::mem::Region& region, const void* va);

/// One per port; used only on the port's thread. Transfers in the same memory share a registration.
/// Where a mapping goes with the address and not with the pages behind it (Bus::maps_addresses(),
/// emulated cards), some are kept when no transfer uses them any more: that they name memory which
/// the program has given back does no harm. Elsewhere, as behind an IOMMU, which maps pages, none
/// outlives its last transfer.
class Registrations {
 public:
  static constexpr uint32_t kKeptMax = 32;

  explicit Registrations(Endpoint& endpoint);
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// @return what covers the range, until put(); null: the card cannot reach it.
  [[nodiscard]] const pmd::mem::Region* get(void* va, uint64_t len_bytes);
  /// @param region of get().
  void put(const pmd::mem::Region* region);

  /// How many there are, and how many of them no transfer uses.
  [[nodiscard]] size_t count() const { return entries_.size(); }
  [[nodiscard]] uint32_t kept() const { return kept_; }

 private:
  struct Entry {
    const pmd::mem::Region* region;
    uint32_t users;
    bool again;     // used more than once
    uint64_t used;  // when last, in calls of put()
  };

  void drop_oldest();

  Endpoint& endpoint_;
  uint32_t kept_max_;
  uint32_t kept_ = 0;
  uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace rio::msg
