/// @file
/// Ranges of a partner's memory that it lets this card read without asking.
#pragma once

#include <array>
#include <cstdint>

#include "fpga/model/frame.hpp"

namespace rio::model {

/// The leases that one destination has given to one queue pair, by RapidIO address. Bytes that were
/// read by one count only if Puller::lease_number() still has its number afterwards.
class Leases {
 public:
  /// Take what a partner has told, unless it is here already. All values are foreign: whatever they
  /// say, find() returns only addresses for Puller::pull(). @param rio_addr of the part.
  void add(uint64_t rio_addr, const Readable& told) {
    if (find(rio_addr, told.part.length, told.lease) != 0) {
      return;
    }
    all_[next_++ % all_.size()] = {
        .first = rio_addr - told.before_bytes,
        .len_bytes = told.before_bytes + told.part.length + told.after_bytes,
        .va = told.part.address - told.before_bytes};
  }
  /// Find [rio_addr, rio_addr + len). @param number that the partner's leases have now; those with
  /// another one are forgotten. @return its address in the partner's process; 0: not leased.
  [[nodiscard]] uint64_t find(uint64_t rio_addr, uint64_t len, uint64_t number) {
    if (number != number_) {
      all_ = {};
      number_ = number;
    }
    for (const Lease& lease : all_) {
      if (len <= lease.len_bytes && rio_addr - lease.first <= lease.len_bytes - len) {
        return lease.va + (rio_addr - lease.first);
      }
    }
    return 0;
  }

 private:
  struct Lease {
    uint64_t first = 0;
    uint64_t len_bytes = 0;  // 0: none
    uint64_t va = 0;
  };

  std::array<Lease, 16> all_{};
  uint32_t next_ = 0;
  uint64_t number_ = 0;
};

}  // namespace rio::model
