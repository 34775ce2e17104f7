/// @file
/// This member's part of a group: its creation, its barriers, and its end. Private to lib/barrier.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/barrier/agreement.hpp"
#include "lib/barrier/card_part.hpp"
#include "lib/barrier/group.hpp"
#include "lib/barrier/group_host.hpp"
#include "lib/barrier/meeting.hpp"
#include "lib/barrier/memory_part.hpp"

namespace rio::barrier {

/// Thread rule: as Group.
class GroupMember final : public Group, private Agreement::Ends {
 public:
  /// @param members, rank, options as create_group() has checked them. @param part distinguishes it
  /// from all others of the context. @param host outlives it.
  GroupMember(GroupHost& host, std::span<const msg::Address> members, uint32_t rank,
              const GroupOptions& options, const Schedule& schedule, uint32_t part);
  ~GroupMember() override;

  // Group.
  [[nodiscard]] int ready() const override;
  [[nodiscard]] int wait_ready(uint32_t timeout_ms) override;
  using Group::arrive;
  [[nodiscard]] int arrive(std::span<const uint8_t> shows) override;
  [[nodiscard]] uint32_t shown_most() const override {
    return way() == Way::kMemory ? kShownMost : 0;
  }
  [[nodiscard]] std::span<const uint8_t> shown(uint32_t rank) const override {
    return memory_->shown(rank);
  }
  [[nodiscard]] int test() const override;
  [[nodiscard]] int wait(uint32_t timeout_ms) override;
  [[nodiscard]] Failure failure() const override { return failure_; }
  [[nodiscard]] uint32_t ranks() const override { return static_cast<uint32_t>(members_.size()); }
  [[nodiscard]] uint32_t rank() const override { return rank_; }
  [[nodiscard]] Way way() const override;
  [[nodiscard]] uint32_t arrivals() const override { return static_cast<uint32_t>(arrivals_); }

  // For the context.

  /// Join. Called once, first.
  void begin();
  /// A message with this group's key has arrived. @param session of the link by which it came.
  /// @return false: the message does not belong to this group, or is not due.
  [[nodiscard]] bool receive(msg::Address from, uint32_t session, const GroupMessage& message);
  /// Sessions have ended: find out whether those of members are among them.
  void check_sessions();
  /// A message of this part will never be delivered.
  void note_unsent(msg::Address to, int error);
  /// Do the work that is due by the clock: deadlines, probes, looks for members that have gone.
  void check_time(uint64_t now_ns);
  /// Let the group fail, and tell the others. Does nothing if it has failed.
  void fail(int error, uint32_t culprit);

  /// Whether the members have not agreed yet.
  [[nodiscard]] bool is_creating() const { return agreement_.is_creating(); }
  [[nodiscard]] uint64_t key() const { return options_.key; }
  [[nodiscard]] uint32_t part() const { return part_; }

 private:
  static constexpr uint64_t kUnknownNs = ~uint64_t{0};

  // Agreement::Ends.
  void send(uint32_t rank, const GroupMessage& message) override;
  [[nodiscard]] IdSet free_ids() override;
  [[nodiscard]] bool load(uint32_t id) override;
  void unload(uint32_t id) override;

  [[nodiscard]] Agreement::Terms terms_of(const GroupOptions& options);
  [[nodiscard]] bool write_card_words(uint32_t id, regs::BarrierDesc* out) const;
  [[nodiscard]] bool has_passed() const {
    return memory_ ? memory_->has_passed() : card_ ? card_->has_passed() : meeting_->has_passed();
  }
  [[nodiscard]] uint32_t epoch() const {
    return memory_ ? memory_->epoch() : card_ ? card_->epoch() : meeting_->epoch();
  }
  [[nodiscard]] GroupMessage message(What what) const;
  [[nodiscard]] uint32_t rank_of(msg::Address address) const;
  [[nodiscard]] bool is_of_other_session(uint32_t rank, uint32_t session) const;
  [[nodiscard]] bool receive_join(msg::Address from, uint32_t rank, const GroupMessage& join);
  void refuse(msg::Address from, const GroupMessage& join, uint32_t rank);
  [[nodiscard]] bool receive_failure(uint32_t rank, const GroupMessage& failure);
  [[nodiscard]] bool receive_left(uint32_t rank, uint32_t epoch);
  [[nodiscard]] bool receive_notification(uint32_t rank, const GroupMessage& notification);
  void send_notification(uint32_t rank, uint32_t round, uint32_t epoch);
  void tell_failure(uint32_t rank);
  void note_agreement();
  void lose(uint32_t rank, int error);
  void end(int error, uint32_t culprit, bool tells_all);
  void check_card(uint64_t now_ns);
  void look_for_gone();
  void probe();
  [[nodiscard]] int wait_for(uint32_t timeout_ms, const std::function<bool()>& is_done);

  GroupHost& host_;
  std::vector<msg::Address> members_;
  GroupOptions options_;
  Schedule schedule_;
  uint32_t rank_;
  uint32_t part_;

  std::optional<Meeting> meeting_;    // in software
  std::optional<MemoryPart> memory_;  // in shared memory
  Failure failure_;
  uint64_t arrivals_ = 0;    // never 0 again
  uint64_t arrived_ns_ = 0;  // at the barrier; kUnknownNs until check_time() is called
  uint64_t probed_ns_ = 0;

  Agreement agreement_;
  std::optional<CardPart> card_;  // on the card; after `agreement_`, which it tells
  bool has_started_ = false;
  uint64_t looked_ns_ = 0;
  uint64_t create_end_ns_;
  bool has_joined_again_ = false;
  std::vector<msg::Address> refused_;  // addresses that were told of the failed creation
  std::vector<uint32_t> sessions_;     // Link::session with each rank; 0: no message yet
  std::vector<bool> left_;             // ranks that have left the group
  std::vector<bool> heard_;            // ranks that have sent something
  std::vector<bool> told_;             // ranks to which kFailed was sent
  uint32_t first_left_ = kNoPeer;      // the rank that left at the earliest epoch
  uint32_t left_epoch_ = 0;            // the last barrier at which that rank arrived
};

}  // namespace rio::barrier
