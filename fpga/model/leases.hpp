/// @file
/// Ranges of a partner's memory that it lets this card read without asking.
#pragma once

#include <array>
#include <cstdint>

#include "fpga/model/frame.hpp"

namespace rio::model {

/// The leases that one destination has given to one queue pair, by RapidIO address. What is read by
/// one counts only if Puller::lease() still has its number afterwards.
class Leases {
 public:
  /// Take what a partner has told. All values are foreign: whatever they say, find() returns only
  /// addresses for Puller::pull(). @param rio_addr of the part.
  void add(uint64_t rio_addr, const Readable& told) {
    start(told.lease);
    Lease& lease = all_[next_++ % all_.size()];
    lease = {.first = rio_addr - told.before_bytes,
             .len_bytes = told.before_bytes + told.part.length + told.after_bytes,
             .va = told.part.address - told.before_bytes};
  }
  /// Find [rio_addr, rio_addr + len). @param number that the partner's leases have now. @return its
  /// address in the partner's process; 0: not leased.
  [[nodiscard]] uint64_t find(uint64_t rio_addr, uint64_t len, uint64_t number) {
    start(number);
    for (const Lease& lease : all_) {
      if (len <= lease.len_bytes && rio_addr - lease.first <= lease.len_bytes - len) {
        return lease.va + (rio_addr - lease.first);
      }
    }
    return 0;
  }
  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  struct Lease {
    uint64_t first = 0;
    uint64_t len_bytes = 0;  // 0: none
    uint64_t va = 0;
  };

  void start(uint64_t number) {
    if (number != number_) {
      all_ = {};
      number_ = number;
    }
  }

  std::array<Lease, 16> all_{};
  uint32_t next_ = 0;
  uint64_t number_ = 0;
};

}  // namespace rio::model
