#include "pmd/card/eal_card.hpp"

#include <rte_eal.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/formatted.hpp"
#include "base/log.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

/// All cards of this process. Never destroyed, like the lock: EAL closes devices after static
/// objects are gone.
std::map<std::string, std::weak_ptr<EalCard>>& cards() {
  static auto* map = new std::map<std::string, std::weak_ptr<EalCard>>;
  return *map;
}

}  // namespace

std::recursive_mutex& control_lock() {
  // Never destroyed: telemetry's thread outlives static objects.
  static auto* lock = new std::recursive_mutex;
  return *lock;
}

CardUser::CardUser(std::string name, std::shared_ptr<EalCard> card)
    : name_(std::move(name)), card_(std::move(card)) {
  card_->users_.push_back(this);
}

CardUser::~CardUser() {
  for (uint32_t qp = 0; qp < card_->queue_pairs(); ++qp) {
    card_->release(qp, *this);
  }
  std::erase(card_->users_, this);
}

EalCard::EalCard(const std::string& name, const CardArgs& args, FoundCard& found)
    : name_(name),
      wire_(std::move(found.wire)),
      args_(args),
      primary_(rte_eal_process_type() == RTE_PROC_PRIMARY),
      bus_(std::move(found.bus)),
      shared_(found.shared) {}

int EalCard::create(const std::string& name, const CardArgs& args, FoundCard found,
                    std::shared_ptr<EalCard>* out) {
  std::shared_ptr<EalCard> card(new EalCard(name, args, found));
  const int rc = card->primary_ ? card->take_over(found.bar, found.works_alone) : card->join();
  if (rc == 0) {
    cards()[name] = card;
    *out = std::move(card);
  }
  return rc;
}

std::shared_ptr<EalCard> EalCard::find(const std::string& name) {
  const auto found = cards().find(name);
  return found == cards().end() ? nullptr : found->second.lock();
}

std::shared_ptr<EalCard> EalCard::other_end() const {
  for (const auto& [name, weak] : cards()) {
    std::shared_ptr<EalCard> card = weak.lock();
    if (card != nullptr && card.get() != this && !wire_.empty() && card->wire_ == wire_) {
      return card;
    }
  }
  return nullptr;
}

std::string EalCard::names() {
  std::string list;
  for (const auto& [name, card] : cards()) {
    list.append(list.empty() || card.expired() ? "" : " ").append(card.expired() ? "" : name);
  }
  return list;
}

int EalCard::take_over(const DmaMemory& bar, bool works_alone) {
  const uint32_t count = regs::id::CapQueues::qps.get(bus_->bar().read32(regs::id::cap_queues()));
  if (count == 0 || count > regs::kMaxQps) {
    base::log_error("%s: the card claims to have %u queue pairs; allowed are 1 to %u",
                    name_.c_str(), count, regs::kMaxQps);
    return -EPROTO;
  }
  if (const uint32_t own = bus_->emulation().dest_id(); own != 0 && own != args_.base_dest_id) {
    if (args_.emu.id != 0) {
      base::log_warning(
          "%s: another card on wire %s has destID 0x%x: this one takes 0x%x. id= chooses",
          name_.c_str(), wire_.c_str(), args_.base_dest_id, own);
    } else {
      base::log_info("%s: its destID on wire %s is 0x%x", name_.c_str(), wire_.c_str(), own);
    }
    args_.base_dest_id = own;
  }
  if (const int rc = open_card(count); rc != 0) {
    return rc;
  }
  return shared_.create(name_, queue_pairs(), works_alone, bar, wire_);
}

int EalCard::join() {
  owners_.resize(shared_.layout().queue_pairs);
  return Card::attach(*bus_, &card_);
}

int EalCard::open_card(uint32_t count) {
  CardConfig config = args_.card;
  Mmio bar = bus_->bar();
  const bool is_vf = regs::id::CapFlags::vf.get(bar.read32(regs::id::cap_flags())) != 0;
  for (uint32_t i = 0; i < count && !is_vf; ++i) {
    config.dest_ids.push_back(args_.base_dest_id + i);
  }
  if (const int rc = Card::open(*bus_, config, &card_); rc != 0) {
    return rc;
  }
  if (is_vf) {
    args_.base_dest_id = card_->dest_id(0);
  }
  owners_.resize(count);
  return check_rings();
}

int EalCard::check_rings() const {
  const Caps& caps = card_->caps();
  for (const RingKey& ring : kRingKeys) {
    const uint32_t log2 = args_.queues.*ring.log2;
    if (log2 < caps.ring_log2_min || log2 > caps.ring_log2_max) {
      base::log_error("%s: bad value '%u' for argument '%s': this card takes %u to %u entries",
                      name_.c_str(), 1u << log2, ring.key, 1u << caps.ring_log2_min,
                      1u << caps.ring_log2_max);
      return -EINVAL;
    }
  }
  return 0;
}

EalCard::~EalCard() {
  const std::lock_guard guard(control_lock());
  card_.reset();
  const bool others = primary_ && shared_.valid() && shared_.others_alive();
  if (primary_ && !others) {
    (void)bus_->stop_dma();  // logged
  }
  if (shared_.valid()) {
    shared_.detach();
  }
  if (others && bus_->emulation().leave_to_others()) {
    base::log_warning("%s: closed while other processes use it; they see a card that is gone",
                      name_.c_str());
  }
  // Another card of this name may have been created since.
  if (const auto found = cards().find(name_); found != cards().end() && found->second.expired()) {
    cards().erase(found);
  }
}

int EalCard::claim(uint32_t qp, CardUser& user) {
  if (card_ == nullptr) {
    return -ENODEV;
  }
  if (qp >= queue_pairs()) {
    base::log_error(
        "%s: no queue pair %u: the card has 0 to %u; an emulated one has more with qps=",
        name_.c_str(), qp, queue_pairs() - 1);
    return -EINVAL;
  }
  if (owners_[qp] == &user) {
    return 0;
  }
  if (owners_[qp] != nullptr) {
    base::log_error("%s: queue pair %u belongs to %s: take another one", name_.c_str(), qp,
                    owners_[qp]->name().c_str());
    return -EBUSY;
  }
  OwnerToken owner = 0;
  const int rc = shared_.claim(qp, *bus_, &owner);
  if (rc == -EBUSY) {
    base::log_error(
        "%s: queue pair %u belongs to process %u: take another one, or end that process",
        name_.c_str(), qp, token_pid(owner));
  }
  owners_[qp] = rc == 0 ? &user : nullptr;
  return rc;
}

int EalCard::claim_one(int wanted, CardUser& user, uint32_t* qp) {
  if (wanted >= 0) {
    *qp = static_cast<uint32_t>(wanted);
    return claim(*qp, user);
  }
  if (const int rc = require_card(name_); rc != 0) {
    return rc;
  }
  for (*qp = 0; *qp < queue_pairs(); ++*qp) {
    if (owners_[*qp] == nullptr && shared_.claim(*qp, *bus_) == 0) {
      owners_[*qp] = &user;
      return 0;
    }
  }
  base::log_error("%s: no queue pair is free: an emulated card gets more with qps=", name_.c_str());
  return -EBUSY;
}

int EalCard::require_card(const std::string& user) const {
  if (card_ == nullptr) {
    base::log_error("%s: the last reset of card %s failed: reset it again", user.c_str(),
                    name_.c_str());
    return -ENODEV;
  }
  return 0;
}

void EalCard::release(uint32_t qp, CardUser& user) {
  if (has(qp, user)) {
    owners_[qp] = nullptr;
    shared_.release(qp);
  }
}

bool EalCard::has(uint32_t qp, const CardUser& user) const {
  return qp < owners_.size() && owners_[qp] == &user;
}

std::string EalCard::other_owner(const CardUser& user) const {
  for (uint32_t qp = 0; qp < queue_pairs(); ++qp) {
    const OwnerToken owner = owners_[qp] == &user ? 0 : shared_.owner(qp);
    if (owners_[qp] != nullptr && owner != 0) {
      return owners_[qp]->name() + " has queue pair " + std::to_string(qp);
    }
    if (token_alive(owner)) {
      return base::formatted("process %u has queue pair %u", token_pid(owner), qp);
    }
  }
  return "";
}

int EalCard::claim_rest(std::vector<uint32_t>* taken) {
  for (uint32_t qp = 0; qp < queue_pairs(); ++qp) {
    if (owners_[qp] != nullptr) {
      continue;
    }
    OwnerToken owner = 0;
    if (const int rc = shared_.claim(qp, *bus_, &owner); rc != 0) {
      if (rc == -EBUSY) {
        base::log_error("%s: cannot reset the card: queue pair %u belongs to process %u",
                        name_.c_str(), qp, token_pid(owner));
      }
      return rc;
    }
    taken->push_back(qp);
  }
  return 0;
}

/// Keeps threads out of the bursts of all users, or of none.
int EalCard::hold_users() {
  for (size_t i = 0; i < users_.size(); ++i) {
    if (const int rc = users_[i]->hold(); rc != 0) {
      std::for_each_n(users_.begin(), i, [](CardUser* user) { user->let_go(); });
      return rc;
    }
  }
  return 0;
}

int EalCard::reopen() {
  for (CardUser* const user : users_) {
    user->before_reset();
  }
  card_.reset();
  if (const int rc = open_card(queue_pairs()); rc != 0) {
    return rc;
  }
  int first = 0;
  for (CardUser* const user : users_) {
    const int rc = user->after_reset();
    first = first != 0 ? first : rc;
  }
  return first;
}

int EalCard::reset() {
  if (!primary_) {
    base::log_error("%s: only the primary process may reset the card", name_.c_str());
    return -EPERM;
  }
  std::vector<uint32_t> taken;
  int rc = claim_rest(&taken);
  rc = rc != 0 ? rc : hold_users();
  if (rc == 0) {
    rc = reopen();
    for (CardUser* const user : users_) {
      user->let_go();
    }
  }
  for (const uint32_t qp : taken) {
    shared_.release(qp);
  }
  return rc;
}

int EalCard::configure(const CardArgs& wanted) {
  constexpr uint32_t kMostUs = 10'000'000;
  const uint64_t most_us = uint64_t{2} * wanted.card.response_timeout_us;
  if (wanted.card.response_timeout_us > kMostUs || wanted.card.receive_timeout_us > most_us ||
      wanted.card.retry_delay_us > kMostUs / 10 || wanted.base_dest_id > 65535 - queue_pairs()) {
    base::log_error(
        "%s: configuration refused: destID %u (0 to %u), time-outs %u (1 to %u) and %u us "
        "(1 to twice the first), retry delay %u us (1 to %u)",
        name_.c_str(), wanted.base_dest_id, 65535 - queue_pairs(), wanted.card.response_timeout_us,
        kMostUs, wanted.card.receive_timeout_us, wanted.card.retry_delay_us, kMostUs / 10);
    return -EINVAL;
  }
  const uint32_t own = card_->caps().is_vf ? card_->dest_id(0) : bus_->emulation().dest_id();
  if (own != 0 && wanted.base_dest_id != own) {
    base::log_error(
        "%s: configuration refused: the card's destID on wire %s is %u, and cannot become %u: give "
        "id= when it is made",
        name_.c_str(), wire_.c_str(), own, wanted.base_dest_id);
    return -EINVAL;
  }
  const CardArgs before = std::exchange(args_, wanted);
  const int rc = reset();
  if (rc != 0) {
    args_ = before;
  }
  return rc;
}

int EalCard::set_dest_id(uint32_t qp, uint32_t dest_id) {
  if (card_ == nullptr) {
    return -ENODEV;
  }
  if (bus_->emulation().dest_id() != 0) {
    base::log_error("%s: destIDs are the card's place on wire %s: give id= when it is made",
                    name_.c_str(), wire_.c_str());
    return -ENOTSUP;
  }
  return card_->set_dest_id(qp, dest_id);
}

int EalCard::set_faults(uint64_t seed, double rate) {
  if (!(rate >= 0.0 && rate <= 1.0)) {
    base::log_error("%s: fault rate %g: allowed is 0.0 to 1.0", name_.c_str(), rate);
    return -EINVAL;
  }
  const int rc = bus_->emulation().set_faults(seed, rate);
  if (rc == -ENOTSUP && rate == 0) {
    return 0;  // a real card has no fault injector to switch off
  }
  if (rc != 0) {
    base::log_error("%s: only the process with the emulated card has its fault injector",
                    name_.c_str());
    return rc;
  }
  args_.emu.model.fault_seed = seed;
  args_.emu.model.fault_rate = rate;
  return 0;
}

void EalCard::let_work() {
  constexpr uint32_t kSteps = 64;  // the card checks its link every few steps
  const PollHook hook = bus_->poll_hook(0);
  for (uint32_t i = 0; i < kSteps; ++i) {
    hook();
  }
}

bool EalCard::wait_link(uint32_t timeout_ms) {
  Waiter waiter(bus_->poll_hook(0), timeout_ms);
  bool up = false;
  do {
    let_work();
    up = card_ != nullptr && card_->link().up;
  } while (!up && card_ != nullptr && waiter.pause());
  return up;
}

}  // namespace rio::pmd
