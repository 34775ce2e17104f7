/// @file
/// The state of a card that the processes of one DPDK application share: where its BAR is, and
/// which process owns which queue pair.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/bus.hpp"

struct rte_memzone;

namespace rio::pmd {

/// Names a living process: 22 bits of its pid, 42 bits of its start time in clock ticks since boot
/// (/proc/PID/stat, field 22), so that a reused pid does not name the former process. 0 is no
/// process.
using OwnerToken = uint64_t;

/// Token of the calling process. 0 if /proc cannot be read.
[[nodiscard]] OwnerToken own_token();
/// Whether the process lives, by asking the kernel. A zombie is dead.
[[nodiscard]] bool token_alive(OwnerToken token);
[[nodiscard]] inline uint32_t token_pid(OwnerToken token) {
  return static_cast<uint32_t>(token >> 42);
}

/// The memzone's contents: no code, and no pointers except for addresses that are equal in every
/// process.
struct SharedCardLayout {
  static constexpr uint32_t kMagic = 0x52435348;
  static constexpr uint32_t kVersion = 2;
  static constexpr uint32_t kMaxAttached = 64;

  std::atomic<uint32_t> magic;  // written last
  uint32_t version;
  uint32_t card_number;  // unique in the application
  uint32_t queue_pairs;
  uint32_t stepping_thread;  // 1: the primary's card works without polls
  uint32_t reserved;
  uint64_t pid_namespace;  // inode of /proc/self/ns/pid, since pids are valid only within it
  uint64_t bar_va;         // 0: a PCI card, whose BAR EAL knows
  uint64_t bar_iova;
  uint64_t bar_len_bytes;
  char wire[72];                                 // of an emulated card, with a final 0
  std::atomic<uint64_t> reaper;                  // process that cleans up after dead ones
  std::atomic<uint64_t> owners[regs::kMaxQps];   // of queue pairs
  std::atomic<uint64_t> attached[kMaxAttached];  // secondaries that use the BAR
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// Claims of queue pairs, free of races between processes: one compare-and-swap from 0 to the own
/// token takes a place. A dead owner's token stays there until a reaper has stopped the rings and
/// freed the memory. There is one reaper at a time; if it dies, the next takes over. Thread-safe,
/// as far as the Bus given to claim() is.
class SharedCard {
 public:
  /// Make the memzone. Primary only. @return -ENOMEM, -EEXIST, -ENAMETOOLONG.
  [[nodiscard]] int create(const std::string& device_name, uint32_t queue_pairs,
                           bool stepping_thread, const DmaMemory& bar, const std::string& wire);
  /// Find the memzone, and enter this process among the attached. @return -ENOENT (the primary has
  /// no such card), -EPROTO (another version), -EXDEV (another pid namespace), -ENOSPC.
  [[nodiscard]] int attach(const std::string& device_name);
  /// Give up all claims and, in the primary, the memzone. Rings must have been stopped.
  void detach();

  /// Claim a queue pair. @return -EBUSY: a living process has it (`owner`, if given, is set),
  /// -ETIMEDOUT, -ENODEV, -ENOMEM: a dead one has it, and its rings and windows cannot be stopped,
  /// -EINVAL: no such queue pair.
  [[nodiscard]] int claim(uint32_t qp, Bus& bus, OwnerToken* owner = nullptr);
  void release(uint32_t qp);
  /// Owner of a queue pair. @return 0: no process.
  [[nodiscard]] OwnerToken owner(uint32_t qp) const;
  /// Whether another living process uses the card.
  [[nodiscard]] bool others_alive() const;

  /// Give the card a number of its own. Primary only, before zone_tag() and create().
  void number_it();
  /// Tag of memory that `owner` takes for this card, see Zones.
  [[nodiscard]] std::string zone_tag(OwnerToken owner) const;

  [[nodiscard]] bool valid() const { return layout_ != nullptr; }
  [[nodiscard]] const SharedCardLayout& layout() const { return *layout_; }

 private:
  [[nodiscard]] int reap(Bus& bus);
  [[nodiscard]] int stop_dead_rings(Bus& bus);

  const rte_memzone* zone_ = nullptr;
  SharedCardLayout* layout_ = nullptr;
  uint32_t card_number_ = 0;
  bool primary_ = false;
};

}  // namespace rio::pmd
