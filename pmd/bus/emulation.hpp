/// @file
/// The functions that only an emulated card has: stepping, faults, and a wire to other processes.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

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

/// The second interface of a bus whose card is emulated in this process. A function that a bus does
/// not override does nothing, or returns -ENOTSUP; the hooks for sending and receiving are then
/// step_hook(). Control path, as Bus, but for the hooks. Functions return 0 or -errno; outputs are
/// set on success only.
class Emulation {
 public:
  /// Hook that lets the card work, for the bursts of one queue pair. Its function is null where the
  /// card has a thread.
  [[nodiscard]] virtual PollHook step_hook(uint32_t /*qp*/) { return {}; }
  /// Hook for queues whose polls ask only for what others send: the card may put off what it has to
  /// tell about this side's messages for a few polls.
  [[nodiscard]] virtual PollHook step_to_receive_hook(uint32_t qp) { return step_hook(qp); }
  /// Hook for when messages were posted: the card may do no more than send them.
  [[nodiscard]] virtual PollHook step_to_send_hook(uint32_t qp) { return step_hook(qp); }
  /// Hook for polls that ask only what has become of this side's messages.
  [[nodiscard]] virtual PollHook step_to_reap_hook(uint32_t qp) { return step_hook(qp); }
  /// Hook for when a barrier was started: the card may do no more than begin it.
  [[nodiscard]] virtual PollHook step_to_start_hook(uint32_t qp) { return step_hook(qp); }

  /// Whether interrupts are raised while the card is not polled, though the bursts have a hook.
  [[nodiscard]] virtual bool wakes() const { return false; }
  /// Rings were armed and their thread will look once more and then sleep. Any thread.
  virtual void before_sleep() {}

  /// Other faults from now on. @param rate 0 (none) to 1. @return -EINVAL, or -ENOTSUP: another
  /// process has the card.
  [[nodiscard]] virtual int set_faults(uint64_t /*seed*/, double /*rate*/) { return -ENOTSUP; }
  /// Register memory at a bus address of the caller's choice; rte_dev_dma_map wants that. Undone
  /// by Bus::dma_unmap(). @return -ENOTSUP, -EEXIST.
  [[nodiscard]] virtual int dma_map_at(void* /*va*/, uint64_t /*iova*/, size_t /*len_bytes*/) {
    return -ENOTSUP;
  }
  /// Other processes still use the card when the bus goes. @return true: they lose it; what they
  /// see of it stays, and says that the card is gone.
  [[nodiscard]] virtual bool leave_to_others() { return false; }

  /// Where cards of other machines find this one, as reach() takes it; empty: by its destID alone.
  [[nodiscard]] virtual std::string address() const { return {}; }
  /// The destID by which messages go to the card at an address; it need not be there yet. Any
  /// thread. @param address foreign. @return 0; -EINVAL: none of this fabric; -ENOSPC: too many;
  /// -ENOTSUP: cards have no addresses here.
  [[nodiscard]] virtual int reach(const std::string& /*address*/, uint32_t* /*dest_id*/) {
    return -ENOTSUP;
  }
  /// Why messages to a destID cannot leave this process, -errno: the resource or permission that
  /// this process lacks. 0: this process is not the cause, or the wire does not know. Any thread.
  [[nodiscard]] virtual int why_unreachable(uint32_t /*dest_id*/) { return 0; }
  /// Whether long reads and writes of the memory behind a destID are copied once, between two
  /// processes or by a real card's DMA engine, rather than packet by packet by a CPU. Any thread.
  [[nodiscard]] virtual bool copies_once(uint32_t /*dest_id*/) { return false; }
  /// Whether the cards of other processes may read a message where it lies in this process, without
  /// a system call.
  [[nodiscard]] virtual bool shows_messages() const { return false; }
  /// destID of the card's first queue pair where the wire gives it, the others follow; 0: it is the
  /// driver's to give.
  [[nodiscard]] virtual uint32_t dest_id() const { return 0; }

 protected:
  ~Emulation() = default;
};

/// Of a bus without a card that is emulated in this process.
class NoEmulation final : public Emulation {
 public:
  [[nodiscard]] bool copies_once(uint32_t /*dest_id*/) override { return true; }
};

}  // namespace rio::pmd
