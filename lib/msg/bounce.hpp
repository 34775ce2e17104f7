/// @file
/// Bounce buffers, for data that the card cannot read or write in place.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "pmd/api/riopmd.hpp"
#include "pmd/mem/cut.hpp"

namespace rio::msg {

/// A pool of buffers of one message each, named by index. Used only on the port's thread. Only
/// create() allocates.
class Bounce {
 public:
  /// @return 0, -ENOMEM.
  [[nodiscard]] int create(Endpoint& endpoint, uint32_t count) {
    if (const int rc = endpoint.alloc(uint64_t{count} * pmd::mem::kMessagePage,
                                      pmd::mem::kMessagePage, &memory_);
        rc != 0) {
      return rc;
    }
    for (uint32_t i = count; i-- > 0;) {
      free_.push_back(i);
    }
    return 0;
  }
  /// Take a buffer. Only if one is free: the caller bounds how many it uses.
  [[nodiscard]] uint32_t get() {
    assert(!free_.empty());
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void put(uint32_t index) { free_.push_back(index); }
  [[nodiscard]] uint8_t* va(uint32_t index) const {
    return static_cast<uint8_t*>(memory_.va) + uint64_t{index} * pmd::mem::kMessagePage;
  }
  [[nodiscard]] uint64_t iova(uint32_t index) const {
    return memory_.iova + uint64_t{index} * pmd::mem::kMessagePage;
  }

 private:
  pmd::DmaMemory memory_{};
  std::vector<uint32_t> free_;
};

}  // namespace rio::msg
