/// @file
/// The barriers of one group on the card.
#pragma once

#include <cerrno>
#include <cstdint>

#include "base/clock.hpp"
#include "lib/barrier/agreement.hpp"
#include "lib/barrier/card_barriers.hpp"
#include "lib/barrier/group.hpp"
#include "lib/barrier/schedule.hpp"

namespace rio::barrier {

/// Thread rule: as Group.
class CardPart final : private CardBarriers::Part {
 public:
  /// How a barrier failed on the card.
  struct Trouble {
    uint64_t since_ns = 0;  ///< 0: there is none
    int error = 0;
    uint32_t rank = kNoPeer;  ///< the peer by which the card noticed it, not always the cause
  };

  /// @param agreement is told when the card has loaded the descriptor. All arguments outlive this.
  CardPart(CardBarriers& card, Agreement& agreement, const Schedule& schedule, BarrierStats& stats)
      : card_(card), agreement_(agreement), schedule_(schedule), stats_(stats) {}
  /// Ends the barrier that runs, and gives the number back.
  ~CardPart() {
    if (id_ != kNoId) {
      cancel();
      card_.give_back(id_, has_failed_);
    }
  }
  CardPart(const CardPart&) = delete;
  CardPart& operator=(const CardPart&) = delete;

  /// @return false: the number is not free.
  [[nodiscard]] bool load(uint32_t id, const regs::BarrierDesc& desc) {
    const bool is_taken = card_.load(id, desc, *this, base::now_ns());
    id_ = is_taken ? id : kNoId;
    return is_taken;
  }
  /// All members are ready.
  void start() { card_.prepare(id_); }
  /// Hot. @return 0; -EAGAIN: the card's ring is full.
  [[nodiscard]] int arrive() {
    if (!card_.arrive(id_, epoch_ + 1)) [[unlikely]] {
      return -EAGAIN;
    }
    ++epoch_;
    has_passed_ = false;
    is_running_ = true;
    return 0;
  }
  /// The group has failed: end what runs.
  void cancel() {
    if (is_running_ && !has_failed_) {
      card_.cancel(id_, epoch_);
    }
    has_failed_ = has_failed_ || is_running_;
  }
  void note_failure() {
    cancel();
    has_failed_ = true;
  }
  [[nodiscard]] bool has_passed() const { return has_passed_; }
  [[nodiscard]] uint32_t epoch() const { return epoch_; }
  [[nodiscard]] const Trouble& trouble() const { return trouble_; }

 private:
  void on_loaded(bool is_ok) override { agreement_.loaded(is_ok ? 0 : -EIO); }
  void on_ended(const pmd::BarrierDone& done) override {
    is_running_ = false;
    has_passed_ = done.status == pmd::Status::kOk;
    stats_.passed += has_passed_ ? 1 : 0;
    if (!has_passed_) {
      has_failed_ = true;
      trouble_.since_ns = base::now_ns();
      trouble_.error = done.status == pmd::Status::kFlushed ? -ECANCELED : -EHOSTUNREACH;
      trouble_.rank = done.round < schedule_.rounds && done.peer < kWays
                          ? schedule_.peer(done.round, done.peer)
                          : kNoPeer;
    }
  }

  CardBarriers& card_;
  Agreement& agreement_;
  const Schedule& schedule_;
  BarrierStats& stats_;
  uint32_t id_ = kNoId;
  uint32_t epoch_ = CardBarriers::kFirstEpoch - 1;
  bool has_passed_ = true;
  bool is_running_ = false;
  bool has_failed_ = false;
  Trouble trouble_;
};

}  // namespace rio::barrier
