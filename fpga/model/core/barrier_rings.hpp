/// @file
/// The barrier rings of a card: each queue pair's engine, with the descriptors of its ring and of
/// its slots. docs/card.md, Barriers
#pragma once

#include <memory>
#include <vector>

#include "fpga/model/barrier/early_store.hpp"
#include "fpga/model/core/core.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

class BarrierRings {
 public:
  BarrierRings(Core& core, Transactions& transactions, Responder& responder);
  ~BarrierRings();
  BarrierRings(const BarrierRings&) = delete;
  BarrierRings& operator=(const BarrierRings&) = delete;

  /// Start the engine of a ring that was started.
  void open(Ring& ring);
  /// Begin to stop the ring: all its barriers end as kFlushed, and their peers are told.
  void begin_stop(Ring& ring);
  /// The pair was reset: its barriers end without a completion, and their peers are told.
  void forget(Pair& pair);

  /// Take a kPledge, and answer it unless a pledge of this card is the answer. It is taken although
  /// the link is down, since its sender does not send it again. @return as on_notice().
  [[nodiscard]] bool on_pledge(const InFrame& frame);
  /// A kPledge of this card was answered.
  void on_pledge_answer(const Flow& flow, const InFrame& frame);
  /// Whether a doorbell is a notification for a barrier ring that runs.
  [[nodiscard]] bool claims(const InFrame& doorbell) {
    using Info = regs::barrier_notice::Info;
    return (doorbell.address & Info::barrier.mask()) != 0 && is_for_ring(doorbell);
  }
  /// Take and answer a notification that claims() has claimed. @return false: no room for the
  /// answer; leave the frame in the ring.
  [[nodiscard]] bool on_notice(const InFrame& frame);
  /// Take the slots and entries that a host has just started, if nothing else is to be done for
  /// barriers. @return false: work() must do it.
  [[nodiscard]] bool start();
  /// Let the next work() look at all slots, also at those that were never used.
  void expect_start();
  /// Whether a notification could not be sent yet: work() sends it.
  [[nodiscard]] bool waits() const;
  /// Bring Core::chores up to date after on_notice(), on_end() or start().
  void note_chores();
  /// A notification that this card sent was answered, or its transaction was given up.
  void on_end(const Flow& flow, const Transaction& transaction, regs::Status status);
  /// Fetch descriptors, look at slots, and do what is due. Call it in each step while Core::chores
  /// has one of its bits.
  void work();

  /// Whether an entry or a slot waits to be taken.
  [[nodiscard]] bool has_posted() const;
  /// Whether the card must be stepped as time goes on, even if no frame comes.
  [[nodiscard]] bool needs_time() const;

 private:
  class Seat;

  [[nodiscard]] Seat& seat(const Pair& pair);
  [[nodiscard]] bool is_for_ring(const InFrame& doorbell);
  [[nodiscard]] Pair* receiver(const InFrame& doorbell);
  [[nodiscard]] bool send(Pair& pair, uint32_t dest_id, uint32_t tag, uint16_t info);
  [[nodiscard]] bool send_pledge(Pair& pair, uint32_t dest_id, uint64_t address);
  [[nodiscard]] Answer take(const InFrame& frame);
  [[nodiscard]] bool answers_wait() const;
  void set_running(bool has_ring);

  Core& core_;
  Transactions& transactions_;
  Responder& responder_;
  barrier::EarlyRoom room_{core_.config.early_notices};
  bool has_ring_ = false;                     // whether a barrier ring runs
  std::vector<std::unique_ptr<Seat>> seats_;  // by number of the pair; null: its ring never ran
};

}  // namespace rio::model
