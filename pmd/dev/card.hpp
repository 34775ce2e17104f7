/// @file
/// A card: identity, reset, receive map, port. Start here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/block_list.hpp"
#include "pmd/dev/caps.hpp"
#include "pmd/dev/types.hpp"

namespace rio::pmd {

class QueuePair;
struct QueuePairConfig;

/// An entry of the receive map: which messages belong to which queue pair. The first match counts.
/// regs: RX_MAP.
struct RxMapEntry {
  uint32_t dest_id;
  uint64_t mbox_mask = ~uint64_t{0};  ///< a bit for each mailbox
  uint32_t qp;
  bool doorbells = true;  ///< doorbells for the destID, too
  bool requests = true;   ///< NREAD, NWRITE and atomics for the destID, too
};

/// Queue pairs that a virtual function gets, with the destIDs that they have. regs: VF.
struct VfShare {
  uint32_t first;  ///< 1 or more; queue pair 0 of the virtual function
  uint32_t count;  ///< at least 1
};

/// Settings that the owner of a card chooses. regs: ID.
struct CardConfig {
  std::vector<uint32_t> dest_ids;         ///< source ID of queue pair i; the missing ones get none
  std::vector<RxMapEntry> rx_map;         ///< empty: each destID to its queue pair, all mailboxes
  std::vector<VfShare> vfs;               ///< of virtual function i; the missing ones get none
  uint32_t vf_qps = 0;                    ///< of each virtual function, if `vfs` is empty: the
                                          ///< last queue pairs, in the order of the functions
  uint32_t dest_id_size = 1;              ///< 0: 8 bits, 1: 16 bits, 2: 32 bits
  uint32_t response_timeout_us = 100000;  ///< at least 1
  uint32_t receive_timeout_us = 200000;   ///< at most twice the response time-out
  uint32_t retry_limit = 0;               ///< 0: never give up
  uint32_t retry_delay_us = 1;
  uint32_t reset_timeout_ms = 1000;  ///< of the reset, and of later changes
};

/// State of the link. regs: PORT.LINK
struct LinkState {
  bool up;
  uint32_t lanes;
  uint32_t lanes_max;
  uint32_t lane_mbaud;
};

/// Decode a word of PORT.LINK. @param word any.
[[nodiscard]] inline LinkState link_state(uint32_t word) {
  using regs::port::Link;
  return {Link::up.get(word) != 0, Link::lanes.get(word), Link::lanes_max.get(word),
          Link::lane_mbaud.get(word)};
}

/// Free-running counters. regs: PORT
struct PortCounters {
  uint32_t tx_packets;
  uint32_t rx_packets;
  uint32_t tx_retries;
  uint32_t rx_retries;
  uint32_t rx_errors;
  uint32_t tx_timeouts;
  uint32_t rx_timeouts;
  uint32_t rx_unmapped;
};

/// Free-running counters of a queue pair's barrier engine. regs: BARRIER
struct BarrierCounters {
  uint32_t sent;         ///< notifications, without those sent again
  uint32_t received;     ///< notifications
  uint32_t early;        ///< of those: before their descriptor, and kept
  uint32_t nacks_given;  ///< answered RETRY: the memory for early ones was full
  uint32_t nacks_taken;  ///< RETRY answers of peers
  uint32_t resent;       ///< sent again after a response time-out
  uint32_t stale;        ///< of an epoch that has ended, dropped
  uint32_t foreign;      ///< of a source that the descriptor does not await, answered ERROR
  uint32_t cancelled;    ///< barriers that ended as Status::kPeerFailed
};
/// Their names, as in the register map.
inline constexpr struct {
  const char* name;
  uint32_t BarrierCounters::*value;
} kBarrierCounterNames[] = {{"sent", &BarrierCounters::sent},
                            {"received", &BarrierCounters::received},
                            {"early", &BarrierCounters::early},
                            {"nacks_given", &BarrierCounters::nacks_given},
                            {"nacks_taken", &BarrierCounters::nacks_taken},
                            {"resent", &BarrierCounters::resent},
                            {"stale", &BarrierCounters::stale},
                            {"foreign", &BarrierCounters::foreign},
                            {"cancelled", &BarrierCounters::cancelled}};

/// A card, one object per process and card. Control path; not thread-safe. All functions access the
/// BAR. Outlives its queue pairs. Functions log the cause of an error and return 0 or -errno; each
/// may return -ENODEV: the card is gone.
class Card {
 public:
  /// Stands for "no destID", of a queue pair without one.
  static constexpr uint32_t kNoDestId = 0xFFFFFFFF;

  /// Become the card's owner: find the blocks, reset, write identity and receive map, give queue
  /// pairs to virtual functions. Other users of the card lose their queue pairs. Of a virtual
  /// function it is its queue pairs' owner: time-outs and destIDs are the physical function's, and
  /// `config` may only repeat the destIDs. @param bus outlives the card.
  /// @return 0, -EINVAL (config), -EPROTO (no card of this contract), -ENOENT (a virtual function
  /// without queue pairs), -ETIMEDOUT, -ENODEV.
  [[nodiscard]] static int open(Bus& bus, const CardConfig& config, std::unique_ptr<Card>* out);
  /// Use a card that another process has opened: nothing is reset or written.
  /// @return 0, -EAGAIN (its owner has not reset it yet, or is at it), -EPROTO, -ENODEV.
  [[nodiscard]] static int attach(Bus& bus, std::unique_ptr<Card>* out);
  /// Inspect a card, whether or not it is in use or was set up: nothing is reset or written. For
  /// tools. @return 0, -EPROTO, -ENODEV.
  [[nodiscard]] static int look(Bus& bus, std::unique_ptr<Card>* out);

  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  [[nodiscard]] const Caps& caps() const { return caps_; }
  [[nodiscard]] Bus& bus() const { return bus_; }

  /// Set the destID of a queue pair. Owner only. @return 0, -ENOENT (no such queue pair), -EINVAL
  /// (too wide), -EPERM (a virtual function), -ETIMEDOUT, -ENODEV.
  [[nodiscard]] int set_dest_id(uint32_t qp, uint32_t dest_id);
  /// The destID in force; kNoDestId if there is none, or no such queue pair.
  [[nodiscard]] uint32_t dest_id(uint32_t qp);
  /// Owner only. Replaces the map and waits until it is in force. Shared receive queues that are
  /// open keep the destIDs of the map at their opening. @return 0, -EINVAL (too long, or
  /// an entry for no queue pair), -ENOTSUP (the card has no map), -ETIMEDOUT, -ENODEV.
  [[nodiscard]] int set_rx_map(std::span<const RxMapEntry> entries);

  /// True if the magic word reads all ones, and only then.
  [[nodiscard]] bool gone();
  /// True if the card is there and has forgotten the settings of this object: another process
  /// has reset it. Its queues are lost; close them all and open the card again.
  [[nodiscard]] bool was_reset();
  /// State of the link. All 0 if the card has no port block, or is gone; but a virtual function,
  /// which does not see the port, counts as up: an event, and kLinkDown of messages, tell more.
  [[nodiscard]] LinkState link();
  [[nodiscard]] PortCounters counters();
  /// All zeros if the queue pair has no barrier engine, or the card is gone. @param qp any number.
  [[nodiscard]] BarrierCounters barrier_counters(uint32_t qp);

  /// Start the rings of a queue pair. @return 0, -ENOENT (no such queue pair or ring), -EBUSY (one
  /// of its rings runs, or a virtual function has it), and as Ring::start.
  [[nodiscard]] int open_queue_pair(uint32_t qp, const QueuePairConfig& config,
                                    std::unique_ptr<QueuePair>* out);

  /// Read a register, for tools. @return 0, -EINVAL (not a multiple of 4), -ERANGE (outside of the
  /// BAR), -ENODEV.
  [[nodiscard]] int reg_read(uint32_t offset_bytes, uint32_t* value);
  /// Write a register, for tools. @return as reg_read(), or -EPERM (the word is the card's, or has
  /// no owner).
  [[nodiscard]] int reg_write(uint32_t offset_bytes, uint32_t value);

  [[nodiscard]] const BlockList& blocks() const { return blocks_; }

 private:
  explicit Card(Bus& bus);
  [[nodiscard]] int identify();
  [[nodiscard]] int check(const CardConfig& config) const;
  [[nodiscard]] int check(std::span<const RxMapEntry> entries) const;
  [[nodiscard]] int check_vf(const CardConfig& config);
  [[nodiscard]] int give_all(const CardConfig& config);
  [[nodiscard]] int give(uint32_t vf, const VfShare& share);
  void silence();
  void write_identity(const CardConfig& config);
  [[nodiscard]] int reset();
  [[nodiscard]] int await(uint32_t offset_bytes, uint32_t wanted, const char* what);
  [[nodiscard]] int failed(int error, const char* what, uint32_t seen) const;
  [[nodiscard]] int check_offset(uint32_t offset_bytes) const;

  Bus& bus_;
  Mmio bar_;
  PollHook hook_;
  BlockList blocks_;
  Caps caps_{};
  uint32_t dest_id_limit_ = 0xFFFFFFFF;  // largest destID of the width in force
  uint32_t timeout_ms_ = 1000;
  uint32_t given_ = 0;       // queue pairs of virtual functions, a bit each
  uint32_t generation_ = 0;  // in force; 0: not known, by look()
};

}  // namespace rio::pmd
