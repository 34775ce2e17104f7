/// @file
/// Memory for rings and buffers from EAL's memzones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "pmd/bus/bus.hpp"

struct rte_memzone;

namespace rio::pmd {

/// Longest tag of Zones: what a memzone's name (31 characters) leaves beside ".", a number, and 0.
inline constexpr size_t kZoneTagMax = 24;

/// Gives out memzones named "TAG.NUMBER". The names let another process find and free what a
/// process that died has left, see free_zones(). Control path, not thread-safe; any process of the
/// DPDK application.
class Zones {
 public:
  /// @param tag at most kZoneTagMax characters; no two living Zones of an application share one.
  explicit Zones(std::string tag) : tag_(std::move(tag)) {}
  /// Frees what was not freed. The card must have stopped using it.
  ~Zones();
  Zones(const Zones&) = delete;
  Zones& operator=(const Zones&) = delete;

  /// @param len_bytes at least 1. @param align_bytes power of two. @return -EINVAL, -ENOMEM.
  [[nodiscard]] int alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out);
  /// @param memory from alloc() of this object, else nothing happens but a log line.
  void free(const DmaMemory& memory);
  [[nodiscard]] bool left_to_others() const { return left_; }
  /// From now on nothing is freed: other processes still use it.
  void leave_to_others() {
    left_ = true;
    zones_.clear();
  }

 private:
  std::string tag_;
  uint32_t next_ = 0;
  bool left_ = false;
  std::map<void*, const rte_memzone*> zones_;
};

/// Allocate as Bus::shared_alloc() does: EAL's memory in the primary process, whose queues others
/// may poll. A secondary's queues are used by no other process, and would be lost if it were
/// killed: it gets memory of its own.
[[nodiscard]] void* eal_shared_alloc(size_t len_bytes, size_t align_bytes);
/// Any thread. @param memory of eal_shared_alloc() in this process, or null.
void eal_shared_free(void* memory);

/// Free all memzones of a tag, of whatever process. The card must have stopped using them, and
/// their owner must be dead. @return how many were freed.
uint32_t free_zones(std::string_view tag);

}  // namespace rio::pmd
