/// @file
/// A card in a DPDK process, shared by all devices on it: raw devices, Ethernet ports, DMA devices.
/// Start here.
#pragma once

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

/// A card that a probe has found, with everything that differs between kinds of cards.
struct FoundCard {
  std::unique_ptr<Bus> bus;
  SharedCard shared;        ///< has a number in the primary process, is attached in a secondary
  std::string wire;         ///< of an emulated card; else ""
  DmaMemory bar{};          ///< for secondary processes; empty: EAL tells them
  bool works_alone = true;  ///< works even when the primary does not poll
};

/// The lock of everything but the bursts: control functions of devices, telemetry and hot-plug run
/// on different threads.
[[nodiscard]] std::recursive_mutex& control_lock();

class EalCard;

/// A device that has queue pairs of a card, or may have. It hears of resets while it exists.
class CardUser {
 public:
  CardUser(const CardUser&) = delete;
  CardUser& operator=(const CardUser&) = delete;
  /// For messages: "raw_rio0".
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Keep threads out of the device's bursts (Turn::take_for_good()), until let_go(). Called for
  /// all users before anything else happens. @return -EBUSY: a thread stays inside, or may; the
  /// card is not reset.
  [[nodiscard]] virtual int hold() = 0;
  /// Let threads in again: the reset succeeded, failed, or was not carried out.
  virtual void let_go() {}
  /// The card is reset next: close the queue pairs. Claims stay.
  virtual void before_reset() = 0;
  /// The card was reset: open the queue pairs again. Not called if the card could not be opened.
  /// @return 0 or -errno.
  [[nodiscard]] virtual int after_reset() = 0;

 protected:
  CardUser(std::string name, std::shared_ptr<EalCard> card);
  /// Ends its claims. Its queue pairs must be closed.
  ~CardUser();

  const std::string name_;
  const std::shared_ptr<EalCard> card_;
};

/// A card and its users. Control path, under control_lock(). Functions return 0 or -errno; the
/// cause is logged.
class EalCard {
 public:
  /// Put a card into operation in the primary process, or attach to it in a secondary. Afterwards
  /// find() knows it by its name.
  [[nodiscard]] static int create(const std::string& name, const CardArgs& args, FoundCard found,
                                  std::shared_ptr<EalCard>* out);
  /// Find a card by name. @return null: this process has no such card.
  [[nodiscard]] static std::shared_ptr<EalCard> find(const std::string& name);
  /// The other card of this process on the wire; null: there is none.
  [[nodiscard]] std::shared_ptr<EalCard> other_end() const;
  /// Names of all cards of this process, separated by blanks.
  [[nodiscard]] static std::string names();
  /// All users must have left.
  ~EalCard();
  EalCard(const EalCard&) = delete;
  EalCard& operator=(const EalCard&) = delete;

  /// Claim a queue pair for a user of this process. Claiming it again is allowed. @return -EBUSY:
  /// another user or process has it, -EINVAL: there is no such queue pair, -ENODEV, or as
  /// SharedCard::claim().
  [[nodiscard]] int claim(uint32_t qp, CardUser& user);
  /// Claim any queue pair, or a given one. @param wanted -1: the lowest free one. @param qp set to
  /// its number. @return as claim().
  [[nodiscard]] int claim_one(int wanted, CardUser& user, uint32_t* qp);
  /// End a claim. The queue pair must be closed.
  void release(uint32_t qp, CardUser& user);
  [[nodiscard]] bool has(uint32_t qp, const CardUser& user) const;

  /// Another user that has a queue pair, as "raw_rio0 has queue pair 2". @return "": there is none.
  [[nodiscard]] std::string other_owner(const CardUser& user) const;
  /// Whether the card is lost: it answers all ones, as a card that was pulled does.
  [[nodiscard]] bool is_gone() { return bus_->bar().read32(regs::id::magic()) == regs::kAllOnes; }

  /// Reset the card. Queue pairs of this process are closed and opened again; operations under way
  /// fail. @return -EBUSY: another process has a queue pair, or a thread stays in a burst; -EPERM:
  /// not the primary process.
  [[nodiscard]] int reset();
  /// Change destIDs and time-outs, with a reset. @param wanted its rings, and settings of emulated
  /// cards, are ignored.
  [[nodiscard]] int configure(const CardArgs& wanted);
  /// Set seed and rate of an emulated card's fault injector. @return -ENOTSUP, -EINVAL.
  [[nodiscard]] int set_faults(uint64_t seed, double rate);
  /// Map external memory (rte_dev_dma_map), with a given bus address if the bus does not choose it.
  [[nodiscard]] int dma_map(void* va, uint64_t iova, size_t len_bytes) {
    return bus_->emulation().dma_map_at(va, iova, len_bytes);
  }
  [[nodiscard]] int dma_unmap(void* va, size_t len_bytes) { return bus_->dma_unmap(va, len_bytes); }

  /// Let an emulated card that no thread steps work a little, so that its registers are current.
  /// Does nothing on PCI.
  void let_work();
  /// Call let_work() until the link is up. @return false: it is not up after `timeout_ms`.
  [[nodiscard]] bool wait_link(uint32_t timeout_ms);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Bus& bus() { return *bus_; }
  /// The card; null: the last reset failed.
  [[nodiscard]] Card* card() { return card_.get(); }
  /// Check that there is a card, before card(). @param user named in the log. @return 0, -ENODEV:
  /// the last reset failed; logged.
  [[nodiscard]] int require_card(const std::string& user) const;
  /// Source ID of a queue pair. Reads the BAR. @return Card::kNoDestId: it has none, or there is no
  /// card.
  [[nodiscard]] uint32_t dest_id(uint32_t qp) {
    return card_ == nullptr ? Card::kNoDestId : card_->dest_id(qp);
  }
  /// Set the source ID of a queue pair. @return -ENOTSUP: destIDs are fixed by the card's place in
  /// a fabric; -EINVAL, -ENODEV, and as Card::set_dest_id().
  [[nodiscard]] int set_dest_id(uint32_t qp, uint32_t dest_id);
  /// Name of the wire of an emulated card, else "".
  [[nodiscard]] const std::string& wire() const { return wire_; }
  [[nodiscard]] SharedCard& shared() { return shared_; }
  [[nodiscard]] const CardArgs& args() const { return args_; }
  [[nodiscard]] uint32_t queue_pairs() const { return static_cast<uint32_t>(owners_.size()); }
  [[nodiscard]] bool is_primary() const { return primary_; }

 private:
  friend class CardUser;  // enters and leaves users_

  EalCard(const std::string& name, const CardArgs& args, FoundCard& found);
  [[nodiscard]] int take_over(const DmaMemory& bar, bool works_alone);
  [[nodiscard]] int join();
  [[nodiscard]] int open_card(uint32_t queue_pairs);
  [[nodiscard]] int check_rings() const;
  [[nodiscard]] int claim_rest(std::vector<uint32_t>* taken);
  [[nodiscard]] int hold_users();
  [[nodiscard]] int reopen();

  std::string name_;
  std::string wire_;
  CardArgs args_;
  bool primary_ = true;
  std::unique_ptr<Bus> bus_;
  SharedCard shared_;
  std::unique_ptr<Card> card_;
  std::vector<CardUser*> owners_;  // user of each queue pair; null: none in this process
  std::vector<CardUser*> users_;
};

}  // namespace rio::pmd
