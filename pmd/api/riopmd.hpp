/// @file
/// The driver for C++ programs: open a card and use its queues, without EAL. Start here;
/// docs/embedding.md has a complete program, riopmd.h is the same for C.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/queue_irq.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/dev/rail_watch.hpp"
#include "pmd/mem/alignment_plan.hpp"
#include "pmd/mem/bounce_pool.hpp"
#include "pmd/mem/buffer_pool.hpp"
#include "pmd/mem/registration.hpp"

namespace rio {

/// How a card is opened.
struct EndpointConfig {
  uint32_t queue_pair = 0;
  uint32_t dest_id = 0;          ///< of queue pair 0; queue pair i has dest_id + i. See dest_id()
  pmd::CardConfig card;          ///< empty dest_ids: made of dest_id
  pmd::QueuePairConfig queues;   ///< ring sizes, rings
  uint32_t irq_rings = 0;        ///< pmd::ring_bit()s of rings that irq_fd() tells about
  uint32_t message_buffers = 0;  ///< size of buffers(); 0: no pool, up to BufferPool::kCountMax
};

/// Handle SIGBUS from now on, in the whole process: a card whose BAR has vanished (hot-unplug under
/// UIO, a reset by another program) then reads all ones, so that it is seen as gone, where the
/// access would end the process. Any other SIGBUS goes to the handler that the program had
/// installed before, or ends the process. Any thread; again: nothing. @return 0, -errno.
[[nodiscard]] int catch_bus_errors();

/// A queue pair of a card, with the memory that it uses. It starts no thread, but for the sleeping
/// ones of docs/cards.md, and changes no affinity, but for pin_poller() and cards named so. The
/// queues are the driver's own, each for one thread at a time; all else is control path: any
/// thread, one at a time for one Endpoint. Functions return 0 or -errno, outputs are set on success
/// only, the log has the reason.
class Endpoint {
 public:
  /// Open a card and one of its queue pairs. The card is reset: other users of it lose their
  /// queues.
  /// @param name "emu:loop", "shm:FABRIC,id=3", "udp:FABRIC,id=3", "sim:SOCKET" or
  /// "0000:03:00.0"; docs/cards.md has the options.
  /// @return 0; -EINVAL (name, option), -EBUSY (in use), -ENODEV (no such card, or gone), -ENOENT
  /// (no such queue pair), -EPROTO, -ENOMEM, -ETIMEDOUT, -ENOTSUP (interrupts).
  [[nodiscard]] static int open(const std::string& name, const EndpointConfig& config,
                                std::unique_ptr<Endpoint>* out);
  /// Open the cards of a name that may have several: "emu:x+emu:y" (docs/cards.md). Each is opened
  /// with the same configuration. @param out in the order of the name. @return as open(); -EINVAL
  /// also if there are more than 8, or one is named twice.
  [[nodiscard]] static int open_all(const std::string& name, const EndpointConfig& config,
                                    std::vector<std::unique_ptr<Endpoint>>* out);
  /// Open a card on a bus of the caller's making.
  [[nodiscard]] static int open(std::unique_ptr<pmd::Bus> bus, const EndpointConfig& config,
                                std::unique_ptr<Endpoint>* out);
  /// Another queue pair of the same card, for another thread. Nothing is reset: config.card and
  /// dest_id do not count. The card is closed with its last Endpoint. @return as open(); -EBUSY:
  /// it is open.
  [[nodiscard]] int open_queue_pair(const EndpointConfig& config, std::unique_ptr<Endpoint>* out);

  /// As close(), whose result is lost.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Stop the rings and free everything. The Endpoint can only be destroyed afterwards.
  /// @return 0; -ENODEV (the card was gone: all is freed); -ETIMEDOUT (the card did not answer:
  /// memory that it may still write stays allocated until the process ends).
  [[nodiscard]] int close();
  /// Whether this process opened the card, rather than being forked since. A forked child may
  /// close() what it inherited: that does not affect its parent's card.
  [[nodiscard]] bool is_ours() const;

  /// The queues, wanted open (EndpointConfig::queues.rings): keep the references, they are valid
  /// until close().
  [[nodiscard]] pmd::QueuePair& queues() { return *pair_; }
  [[nodiscard]] pmd::TxQueue& tx() { return pair_->tx(); }
  [[nodiscard]] pmd::SharedRxQueue& shared() { return pair_->shared(); }
  [[nodiscard]] pmd::DoorbellQueue& doorbells() { return pair_->doorbells(); }
  [[nodiscard]] pmd::DmaQueue& dma() { return pair_->dma(); }
  [[nodiscard]] pmd::MaintQueue& maint() { return pair_->maint(); }
  [[nodiscard]] pmd::EventQueue& events() { return pair_->events(); }
  [[nodiscard]] pmd::BarrierQueue& barriers() { return pair_->barriers(); }
  /// Open and close the barrier ring, if EndpointConfig::queues.barriers has not opened it; as
  /// QueuePair's.
  [[nodiscard]] int open_barriers();
  [[nodiscard]] int close_barriers();
  /// Let the card keep its status up to date in host memory, for all Endpoints of the card, until
  /// close_rail_watch() or the close() of the last one. @param period_us between two writes, at
  /// least 1. @return as RailWatch::create(); -EBUSY: it does so already.
  [[nodiscard]] int open_rail_watch(uint32_t period_us);
  /// No thread reads the status any more. @return as RailWatch::close(); -ENOENT (not open).
  [[nodiscard]] int close_rail_watch();
  /// The status of the card, which any thread may read; null if it is not open. Valid until
  /// close_rail_watch() or the close() of the last Endpoint of the card.
  [[nodiscard]] const pmd::RailWatch* rail_watch() const;
  /// Dedicated queues, by index; as QueuePair's. They allocate, so go through here where several
  /// Endpoints share a card.
  [[nodiscard]] int open_dedicated(uint32_t i, uint32_t source, uint32_t mbox,
                                   pmd::DedicatedRxQueue** out);
  [[nodiscard]] int close_dedicated(uint32_t i);

  /// Of the queue pair. A card of "shm:" or "udp:" has its own, and EndpointConfig::dest_id need
  /// not be given.
  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  /// Where others find this queue pair, for reach(): "10.0.0.1:7000" of a card of "udp:"; empty:
  /// by its destID alone.
  [[nodiscard]] std::string address() const;
  /// The destID by which messages go to the card with an address() on another machine; it need not
  /// be there yet. Any thread. @param address foreign. @return 0; -EINVAL: no address of such a
  /// card; -ENOSPC: too many; -ENOTSUP: cards have no addresses here.
  [[nodiscard]] int reach(const std::string& address, uint32_t* dest_id);
  /// Why messages to a destID cannot leave this process, -errno: the descriptors, memory or
  /// permission that it lacks; logged. 0: this process is not the cause. Any thread.
  [[nodiscard]] int why_unreachable(uint32_t dest_id);
  /// Whether dma() moves long data straight from memory to memory: a real card does. An emulated
  /// one copies packet by packet, unless it may read the memory of the partner's process. Any
  /// thread.
  [[nodiscard]] bool moves_directly(uint32_t dest_id);
  /// Whether this card is an emulated one of whose messages the receiving card, in another process,
  /// may read the bytes where they lie. Any thread.
  [[nodiscard]] bool shows_messages() const;
  [[nodiscard]] pmd::Card& card();
  [[nodiscard]] const pmd::Caps& caps() const;
  /// "emu:loop/0", "0000:03:00.0".
  [[nodiscard]] const std::string& name() const;
  /// The card's rules for the alignment plan.
  [[nodiscard]] pmd::mem::AlignRules align_rules() const;
  /// Wait until the link is up; both ends of a wire have to, before either sends.
  /// @return 0, -ETIMEDOUT, -ENODEV.
  [[nodiscard]] int wait_link(uint32_t timeout_ms);

  /// Allocate memory for messages, zeroed, in whole pages. close() frees it, too.
  /// @param len_bytes at least 1. @param align_bytes power of two. @return 0, -EINVAL, -ENOMEM.
  [[nodiscard]] int alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out);
  /// The card must be done with it. @return 0, -ENOENT (not of alloc()), -EBUSY (registered, too).
  [[nodiscard]] int free(const pmd::DmaMemory& memory);
  /// Make the program's own memory reachable, whole pages of it. It must stay mapped until
  /// unregister_memory() or close(). @param region where the card finds it, for the alignment plan;
  /// valid as long; may be null. @return as MemoryMap::register_range().
  [[nodiscard]] int register_memory(void* va, size_t len_bytes, const pmd::mem::Region** region);
  /// @param va, len_bytes as registered. @return 0, -ENOENT.
  [[nodiscard]] int unregister_memory(void* va, size_t len_bytes);
  /// Unregister one of several registrations of a range. @param region of register_memory().
  [[nodiscard]] int unregister_memory(const pmd::mem::Region* region);
  /// Bus address of memory of alloc(), buffers() or register_memory().
  /// @return 0, -ENOENT (not registered), -EXDEV (not contiguous for the card).
  [[nodiscard]] int iova(const void* va, size_t len_bytes, uint64_t* iova);
  /// Message buffers, got and put in bursts by one thread; null if message_buffers was 0.
  [[nodiscard]] pmd::mem::BufferPool* buffers() { return buffers_.get(); }

  /// Becomes readable when an armed ring of irq_rings has completions. The card's.
  /// @return descriptor, or -ENOENT (irq_rings was 0).
  [[nodiscard]] int irq_fd() const { return irq_.fd(); }
  /// Ask for an interrupt; look at the queues once more before sleeping. By the thread that polls
  /// them. @return 0, -EINVAL (a ring that is not open, or not of irq_rings).
  [[nodiscard]] int irq_arm(uint32_t rings) { return irq_.arm(*pair_, name(), rings); }
  /// Take the interrupt that woke the thread. @return 0, also if there was none; -errno of read().
  [[nodiscard]] int irq_ack() const { return irq_.ack(); }

  /// Pin the calling thread near the card, or to a CPU of a list ("2,4-7"), apart from the other
  /// pollers of the process; a warning tells where that cannot be. @return the CPU, or -errno.
  [[nodiscard]] int pin_poller(const std::string& cpus = "") const;
  /// NUMA distance of the card from the CPU that the calling thread runs on, as the firmware has
  /// it.
  /// @return 10 (the same node, or unknown) to 255.
  [[nodiscard]] uint32_t numa_distance() const;

 private:
  struct Device;
  struct UserMemory {
    void* va;
    size_t len_bytes;
    pmd::mem::Registration registration;
  };

  explicit Endpoint(std::shared_ptr<Device> device);
  [[nodiscard]] int start(const EndpointConfig& config);
  template <class Match>
  [[nodiscard]] bool drop_registration(const Match& match);
  void free_memory();
  void silence();
  void keep_for_ever();

  std::shared_ptr<Device> device_;
  std::unique_ptr<pmd::mem::BufferPool> buffers_;
  std::vector<pmd::DmaMemory> allocated_;
  std::vector<UserMemory> registered_;
  std::unique_ptr<pmd::QueuePair> pair_;
  pmd::QueueIrq irq_;
  uint32_t dest_id_ = 0;
};

}  // namespace rio
