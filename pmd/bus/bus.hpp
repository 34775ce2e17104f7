/// @file
/// What the driver needs of a bus: a BAR, memory that the card can reach, and, for an emulated
/// card, a hook that lets it work. emu, vfio and eal implement it.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "pmd/bus/mmio.hpp"

namespace rio::pmd {

/// Called once by each burst. A function pointer, not a virtual call, so that a queue holds it
/// beside its other hot fields; `fn` is null on PCI.
struct PollHook {
  void (*fn)(void* ctx) noexcept = nullptr;
  void* ctx = nullptr;

  void operator()() const {
    if (fn != nullptr) {
      fn(ctx);
    }
  }
};

/// Memory of the bus's own, reachable by the card: contiguous in bus addresses, zeroed.
struct DmaMemory {
  void* va = nullptr;
  uint64_t iova = 0;
  size_t len_bytes = 0;
};

/// A piece of registered memory that is contiguous in bus addresses.
struct IovaRun {
  void* va;
  uint64_t iova;
  size_t len_bytes;
};

/// Memory of this process alone, zeroed. @param align_bytes power of two. @return null: none; else
/// the caller's to std::free().
[[nodiscard]] inline void* own_alloc(size_t len_bytes, size_t align_bytes) {
  const size_t rounded = (len_bytes + align_bytes - 1) & ~(align_bytes - 1);
  void* const memory = std::aligned_alloc(align_bytes, rounded);
  return memory != nullptr ? std::memset(memory, 0, rounded) : nullptr;
}

/// A way to one card. Control path: not thread-safe, never called from a burst, except the hook.
/// Functions return 0 or -errno; outputs are set on success only.
class Bus {
 public:
  virtual ~Bus() = default;

  /// A fresh window onto BAR0; each queue keeps one of its own.
  [[nodiscard]] virtual Mmio bar() = 0;

  /// Hook for the bursts of one queue pair.
  [[nodiscard]] virtual PollHook poll_hook(uint32_t qp) = 0;
  /// The same for queues whose polls ask only for what others send: the card may put off what it
  /// has to tell about our own messages for a few polls.
  [[nodiscard]] virtual PollHook receive_hook(uint32_t qp) { return poll_hook(qp); }
  /// The same for what is called when messages were posted: the card may do no more than send them.
  [[nodiscard]] virtual PollHook send_hook(uint32_t qp) { return poll_hook(qp); }

  /// Memory for rings and buffers, zeroed. @param len_bytes at least 1. @param align_bytes power
  /// of two, bus address and pointer are aligned to it. @return -ENOMEM names the remedy in the
  /// log.
  [[nodiscard]] virtual int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) = 0;
  /// The card must have stopped using it.
  virtual void dma_free(const DmaMemory& memory) = 0;

  /// Memory for the objects that go with the rings, which the card need not reach: zeroed, and
  /// where several processes use what this one has opened they see it at the same address.
  /// @param len_bytes at least 1. @param align_bytes power of two. @return null: none.
  [[nodiscard]] virtual void* shared_alloc(size_t len_bytes, size_t align_bytes) {
    return own_alloc(len_bytes, align_bytes);
  }
  /// @param memory of shared_alloc(), or null.
  virtual void shared_free(void* memory) { std::free(memory); }

  /// Make user memory reachable. @param va, len_bytes page-aligned. @param runs in order of va.
  /// @return -ENOTSUP where the bus cannot (UIO, memory that is no hugepage), -EEXIST on overlap.
  [[nodiscard]] virtual int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) = 0;
  [[nodiscard]] virtual int dma_unmap(void* va, size_t len_bytes) = 0;
  /// Whether a mapping of dma_map() is one of addresses: what the program has there at the time is
  /// what the card reaches. Else it is one of pages, and wrong once others are there.
  [[nodiscard]] virtual bool maps_addresses() const { return false; }

  /// eventfd that becomes readable when the vector is raised. @return fd (the bus owns it), or
  /// -ENOTSUP.
  [[nodiscard]] virtual int irq_fd(uint32_t vector) = 0;

  /// Whether interrupts are raised while nobody polls, though the bursts have a hook.
  [[nodiscard]] virtual bool wakes() const { return false; }
  /// Rings were armed and their thread will look once more and then sleep. Any thread.
  virtual void before_sleep() {}

  // What only some buses can.
  /// Register memory at a bus address of the caller's choice; rte_dev_dma_map wants that. Undone
  /// by dma_unmap(). @return -ENOTSUP where the bus chooses, -EEXIST.
  [[nodiscard]] virtual int dma_map_at(void* va, uint64_t iova, size_t len_bytes) {
    static_cast<void>(va);
    static_cast<void>(iova);
    static_cast<void>(len_bytes);
    return -ENOTSUP;
  }
  /// Other faults from now on. @param rate 0 (none) to 1. @return -EINVAL, or -ENOTSUP: faults are
  /// not ours to make here.
  [[nodiscard]] virtual int set_faults(uint64_t seed, double rate) {
    static_cast<void>(seed);
    static_cast<void>(rate);
    return -ENOTSUP;
  }
  /// Other processes still use the card when this bus goes. @return true: they lose it; what they
  /// see of it stays, and says that the card is gone.
  [[nodiscard]] virtual bool leave_to_others() { return false; }

  /// Where cards of other machines find this one, as reach() takes it; empty: by its destID alone.
  [[nodiscard]] virtual std::string address() const { return {}; }
  /// The destID by which messages go to whoever is at an address; it need not be there yet. Any
  /// thread. @param address foreign. @return 0; -EINVAL: none of this fabric; -ENOSPC: too many;
  /// -ENOTSUP: cards have no addresses here.
  [[nodiscard]] virtual int reach(const std::string& address, uint32_t* dest_id) {
    static_cast<void>(address);
    static_cast<void>(dest_id);
    return -ENOTSUP;
  }

  /// Why messages to a destID cannot leave this process, -errno: what it lacks, or may not do. 0:
  /// it is not this process that is in the way, or the bus does not know. Any thread.
  [[nodiscard]] virtual int why_unreachable(uint32_t dest_id) {
    static_cast<void>(dest_id);
    return 0;
  }

  /// destID of the card's first queue pair where the card has its own, the others follow; 0: it is
  /// the driver's to give.
  [[nodiscard]] virtual uint32_t dest_id() const { return 0; }

  /// For messages: "0000:03:00.0", "emu:pair0/0".
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// NUMA node of the card, -1 if unknown.
  [[nodiscard]] virtual int numa_node() const = 0;
};

}  // namespace rio::pmd
