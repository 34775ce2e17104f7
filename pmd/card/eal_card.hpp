/// @file
/// A card in a DPDK process, for all devices that use it: raw devices, Ethernet ports, DMA devices.
/// Start here.
#pragma once

#include <cerrno>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/card/card_args.hpp"
#include "pmd/card/shared_card.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"

namespace rio::pmd {

/// A card that a probe has found, with all that differs between kinds of cards.
struct FoundCard {
  std::unique_ptr<Bus> bus;
  SharedCard shared;        ///< has a number in the primary, is attached in a secondary
  std::string wire;         ///< of an emulated card, else ""
  DmaMemory bar{};          ///< where secondaries find it; empty: EAL tells them
  bool works_alone = true;  ///< also when the primary does not poll
};

/// Taken by everything but the bursts: control functions of devices, telemetry, and hot-plug come
/// from different threads.
[[nodiscard]] std::recursive_mutex& control_lock();

/// A device that has queue pairs of a card, or may have.
class CardUser {
 public:
  /// For messages: "raw_rio0".
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Keep threads out of its bursts (Turn::take_for_good()), until let_go(). Asked of all users,
  /// before anything else happens. @return -EBUSY: one does not come out; the card is not reset.
  [[nodiscard]] virtual int hold() { return 0; }
  /// After a reset that went well, or failed, or was not carried out.
  virtual void let_go() {}
  /// The card is reset next: close the queue pairs. Claims stay.
  virtual void before_reset() = 0;
  /// It was: open them anew. Not called if the card could not be opened. @return 0 or -errno.
  [[nodiscard]] virtual int after_reset() = 0;

 protected:
  ~CardUser() = default;
};

/// Control path, under control_lock(). Functions return 0 or -errno; the cause is logged.
class EalCard {
 public:
  /// Put a card into operation in the primary process; use it in a secondary. It can be found by
  /// its name from then on.
  [[nodiscard]] static int create(const std::string& name, const CardArgs& args, FoundCard found,
                                  std::shared_ptr<EalCard>* out);
  /// Null: this process has no card of this name.
  [[nodiscard]] static std::shared_ptr<EalCard> find(const std::string& name);
  /// The other card of this process on a wire. Null: none.
  [[nodiscard]] std::shared_ptr<EalCard> other_end() const;
  /// Names of all cards of this process, with blanks between them.
  [[nodiscard]] static std::string names();
  /// All users have left.
  ~EalCard();
  EalCard(const EalCard&) = delete;
  EalCard& operator=(const EalCard&) = delete;

  /// From now on `user` hears of resets.
  void enter(CardUser& user);
  /// Its claims end; its queue pairs are closed.
  void leave(CardUser& user);

  /// Have a queue pair for a user of this process. Claiming it again is no error. @return -EBUSY:
  /// another user or process has it, -EINVAL: there is none of this number, -ENODEV, or as
  /// SharedCard::claim().
  [[nodiscard]] int claim(uint32_t qp, CardUser& user);
  /// claim() for a user that may be told its number. @param wanted -1: the lowest free one. @param
  /// qp the one that it has now. @return as claim().
  [[nodiscard]] int claim_one(int wanted, CardUser& user, uint32_t* qp);
  /// It is closed.
  void release(uint32_t qp, CardUser& user);
  [[nodiscard]] bool has(uint32_t qp, const CardUser& user) const;

  /// Reset the card. Queue pairs of this process are closed and opened anew; what was under way has
  /// failed. @return -EBUSY: another process has one, or a thread stays in a burst; -EPERM: in a
  /// secondary.
  [[nodiscard]] int reset();
  /// Other destIDs and time-outs, with a reset. @param wanted rings and what only emulated cards
  /// have stay as they are.
  [[nodiscard]] int configure(const CardArgs& wanted);
  /// Seed and rate that the fault injector of an emulated card has. @return -ENOTSUP, -EINVAL.
  [[nodiscard]] int set_faults(uint64_t seed, double rate);
  /// Address of external memory (rte_dev_dma_map), where the bus does not choose it.
  [[nodiscard]] int dma_map(void* va, uint64_t iova, size_t len_bytes) {
    return emulation_ == nullptr ? -ENOTSUP : emulation_->dma_map_at(va, iova, len_bytes);
  }
  [[nodiscard]] int dma_unmap(void* va, size_t len_bytes) { return bus_->dma_unmap(va, len_bytes); }

  /// Let an emulated card work a little, where no thread steps it, so that its registers are of
  /// now. Nothing on PCI.
  void let_work();
  /// let_work() until the link is up. @return false: it is not, after `timeout_ms`.
  [[nodiscard]] bool wait_link(uint32_t timeout_ms);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Bus& bus() { return *bus_; }
  /// Null: the last reset failed.
  [[nodiscard]] Card* card() { return card_.get(); }
  /// Call it before card(), where it is not known that the card is there. @param user named in the
  /// log.
  /// @return 0, -ENODEV: the last reset failed; the log says so.
  [[nodiscard]] int require_card(const std::string& user) const;
  /// Source ID of a queue pair. BAR read. @return Card::kNoDestId: it has none, or there is no
  /// card.
  [[nodiscard]] uint32_t dest_id(uint32_t qp) {
    return card_ == nullptr ? Card::kNoDestId : card_->dest_id(qp);
  }
  /// Set it. @return -ENOTSUP: destIDs are the card's place in a fabric; -EINVAL, -ENODEV, and as
  /// Card::set_dest_id().
  [[nodiscard]] int set_dest_id(uint32_t qp, uint32_t dest_id);
  /// Name of the wire of an emulated card, else "".
  [[nodiscard]] const std::string& wire() const { return wire_; }
  [[nodiscard]] SharedCard& shared() { return shared_; }
  [[nodiscard]] const CardArgs& args() const { return args_; }
  [[nodiscard]] uint32_t queue_pairs() const { return static_cast<uint32_t>(owners_.size()); }
  [[nodiscard]] bool is_primary() const { return primary_; }

 private:
  EalCard(std::string name, CardArgs args, FoundCard found);
  [[nodiscard]] int take_over(const DmaMemory& bar, bool works_alone);
  [[nodiscard]] int join();
  [[nodiscard]] int open_card(uint32_t queue_pairs);
  [[nodiscard]] int check_rings() const;
  [[nodiscard]] int claim_rest(std::vector<uint32_t>* taken);
  [[nodiscard]] int hold_users();
  [[nodiscard]] int reopen();
  /// destID that the wire gives; 0: none.
  [[nodiscard]] uint32_t wire_dest_id() const {
    return emulation_ == nullptr ? 0 : emulation_->dest_id();
  }

  std::string name_;
  std::string wire_;
  CardArgs args_;
  bool primary_ = true;
  std::unique_ptr<Bus> bus_;
  Emulation* emulation_ = nullptr;  // of the bus; null: none
  SharedCard shared_;
  std::unique_ptr<Card> card_;
  std::vector<CardUser*> owners_;  // of each queue pair; null: none of this process
  std::vector<CardUser*> users_;
};

}  // namespace rio::pmd
