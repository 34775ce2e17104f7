/// @file
/// The driver's view of a bus: a BAR, and memory that the card can reach. emu, vfio and eal
/// implement it.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "pmd/bus/emulation.hpp"
#include "pmd/bus/mmio.hpp"

namespace rio::pmd {

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

/// Append a run, joined with the last one if it continues that in both address spaces.
inline void append_run(const IovaRun& run, std::vector<IovaRun>* runs) {
  if (!runs->empty()) {
    IovaRun& last = runs->back();
    if (static_cast<uint8_t*>(last.va) + last.len_bytes == run.va &&
        last.iova + last.len_bytes == run.iova) {
      last.len_bytes += run.len_bytes;
      return;
    }
  }
  runs->push_back(run);
}

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

  /// The emulator's side of the bus; the bus owns it. On PCI, and if another process emulates the
  /// card, one that does nothing.
  [[nodiscard]] virtual Emulation& emulation() {
    static NoEmulation none;
    return none;
  }
  /// Hook for the bursts of one queue pair; on PCI one that does nothing.
  [[nodiscard]] PollHook poll_hook(uint32_t qp) { return emulation().step_hook(qp); }

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
  [[nodiscard]] virtual int dma_map(void* /*va*/, size_t /*len_bytes*/,
                                    std::vector<IovaRun>* /*runs*/) {
    return -ENOTSUP;
  }
  [[nodiscard]] virtual int dma_unmap(void* /*va*/, size_t /*len_bytes*/) { return -ENOTSUP; }
  /// Whether a mapping of dma_map() is one of addresses: what the program has there at the time is
  /// what the card reaches. Else it is one of pages, and wrong once others are there.
  [[nodiscard]] virtual bool maps_addresses() const { return false; }

  /// Whether the card reaches memory that was never mapped for it: no IOMMU is in its way.
  [[nodiscard]] virtual bool reaches_all_memory() const { return false; }
  /// Let the card access memory: a bus gives it no right to before. Called by Card::open() when the
  /// card has answered its reset, so that a card which an earlier program left running never
  /// reaches memory of this one. Again: nothing.
  [[nodiscard]] virtual int start_dma() { return 0; }
  /// End the card's accesses to memory, and wait for those under way; the destructor of a bus of
  /// one process does it, too. Its rings should be stopped. @return 0, also for a card that is
  /// gone; -ETIMEDOUT, -EIO: it may still access memory, which then must stay allocated.
  [[nodiscard]] virtual int stop_dma() { return 0; }

  /// eventfd that becomes readable when the vector is raised. @return fd (the bus owns it), or
  /// -ENOTSUP.
  [[nodiscard]] virtual int irq_fd(uint32_t /*vector*/) { return -ENOTSUP; }

  /// For messages: "0000:03:00.0", "emu:pair0/0".
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// NUMA node of the card, -1 if unknown.
  [[nodiscard]] virtual int numa_node() const { return -1; }
};

}  // namespace rio::pmd
