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

/// Longest tag of Zones: a memzone's name (31 characters) also holds ".", a number, and 0.
inline constexpr size_t kZoneTagMax = 24;

/// Allocates memzones named "TAG.NUMBER". By the names another process can find and free the memory
/// of a process that died, see free_zones(). Control path, not thread-safe; any process of the DPDK
/// application.
class Zones {
 public:
  /// @param tag at most kZoneTagMax characters; no two living Zones of an application share one.
  explicit Zones(std::string tag) : tag_(std::move(tag)) {}
  /// Frees all that was not freed. The card must have stopped using it.
  ~Zones();
  Zones(const Zones&) = delete;
  Zones& operator=(const Zones&) = delete;

  /// Allocate a memzone. @param len_bytes at least 1. @param align_bytes a power of two. @return 0,
  /// -EINVAL, -ENOMEM.
  [[nodiscard]] int alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out);
  /// Free a memzone. @param memory from alloc() of this object; for other memory it only logs an
  /// error.
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

/// Allocate as Bus::shared_alloc() does. The primary process gets EAL's memory, since other
/// processes may poll its queues. A secondary process gets its own memory: no other process uses
/// its queues, and EAL's memory would be lost if it were killed.
[[nodiscard]] void* eal_shared_alloc(size_t len_bytes, size_t align_bytes);
/// Free memory of eal_shared_alloc() in this process; null is allowed. Any thread.
void eal_shared_free(void* memory);

/// Free all memzones of a tag, of any process. The card must have stopped using them, and their
/// owner must be dead. @return how many were freed.
uint32_t free_zones(std::string_view tag);

}  // namespace rio::pmd
