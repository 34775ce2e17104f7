/// @file
/// How a group ends: members that leave, die or are cut off, and how the others are told.
#include <bit>
#include <cerrno>
#include <utility>

#include "lib/barrier/group_member.hpp"

namespace rio::barrier {
namespace {

/// After this time, a member that waits probes the peers for which it waits.
constexpr uint64_t kProbeNs = 1000 * kMsNs;
/// How long a member waits for the message that names the cause, after a barrier failed on the
/// card.
constexpr uint64_t kCauseNs = 500 * kMsNs;
/// A member that waits looks this often whether peers have gone.
constexpr uint64_t kLookNs = 10 * kMsNs;

}  // namespace

bool GroupMember::receive_left(uint32_t rank, uint32_t epoch) {
  left_[rank] = true;
  if (!has_started_ || failure_.error != 0 ||
      (first_left_ != kNoPeer && static_cast<int32_t>(epoch - left_epoch_) >= 0)) {
    return true;
  }
  first_left_ = rank;
  left_epoch_ = epoch;
  if (!has_passed() && static_cast<int32_t>(this->epoch() - epoch) > 0) {
    end(-ECONNREFUSED, rank, true);
  }
  return true;
}

void GroupMember::fail(int error, uint32_t culprit) {
  if (failure_.error != 0) {
    return;
  }
  if (agreement_.is_creating()) {
    agreement_.fail(error, culprit);
    note_agreement();
  } else {
    end(error, culprit, true);
  }
}

/// Let a group that was created fail.
/// @param tells_all whether all members are to be told, or only the peers of the schedule.
void GroupMember::end(int error, uint32_t culprit, bool tells_all) {
  failure_ = {error, culprit};
  ++host_.stats.failed;
  if (memory_) {
    failure_ = memory_->fail(error, culprit);
    return;
  }
  if (card_) {
    card_->note_failure();
  }
  const auto tell = [&](uint32_t rank) {
    if (rank != rank_ && (rank != culprit || error != -ECONNRESET)) {
      tell_failure(rank);
    }
  };
  if (!tells_all) {
    schedule_.for_each_peer(tell);
    return;
  }
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    tell(rank);
  }
}

/// Tell a member of the failure, once: all at once, or a member that was taken for dead when it
/// sends something.
void GroupMember::tell_failure(uint32_t rank) {
  if (has_started_ && !memory_ && !told_[rank]) {
    told_[rank] = true;
    GroupMessage failed = message(What::kFailed);
    failed.error = failure_.error;
    failed.culprit = failure_.rank;
    send(rank, failed);
  }
}

void GroupMember::check_sessions() {
  for (uint32_t rank = 0; rank < ranks() && failure_.error == 0; ++rank) {
    const uint32_t session = sessions_[rank];
    if (session != 0 && session != host_.mail.session_with(members_[rank])) {
      lose(rank, host_.message_port.known_link(msg::dest_id_of(members_[rank]))->error);
    }
  }
}

/// The session with a member has ended.
void GroupMember::lose(uint32_t rank, int error) {
  const bool is_back = !host_.message_port.has_gone(msg::dest_id_of(members_[rank]));
  if (agreement_.stage() == Agreement::Stage::kJoining) {
    // Either this was a session with an earlier process, which this member's kJoin has ended, or
    // the member is not there yet: then kJoin is tried again.
    if (error == -EHOSTUNREACH || (rank_ == 0 && agreement_.has_not_joined(rank))) {
      sessions_[rank] = 0;
      return;
    }
    if (rank_ != 0 && is_back && !std::exchange(has_joined_again_, true)) {
      sessions_[rank] = 0;
      host_.mail.drop_joins(part_);
      begin();
      return;
    }
  }
  if (meeting_ && !heard_[rank]) {
    // It may have been the session of an earlier process, which was not known to have gone. If no
    // process has taken its place, the next session ends, too, and then the group fails.
    heard_[rank] = true;  // once
    sessions_[rank] = 0;
    meeting_->send_again(
        rank, [&](uint32_t round, uint32_t epoch) { send_notification(rank, round, epoch); });
    return;
  }
  if (!left_[rank]) {
    fail(error != 0 ? error : -ECONNRESET, rank);
  }
}

void GroupMember::note_unsent(msg::Address to, int error) {
  const uint32_t rank = rank_of(to);
  if (failure_.error != 0 || rank == kNoPeer || left_[rank]) {
    return;
  }
  if (error == -ECONNRESET) {
    lose(rank, error);
  } else {
    fail(error, rank);
  }
}

void GroupMember::check_time(uint64_t now_ns) {
  note_agreement();
  if (failure_.error != 0) {
    return;
  }
  if (agreement_.is_creating()) {
    if (now_ns > create_end_ns_) {
      fail(-ETIMEDOUT, agreement_.missing());
    }
    return;
  }
  if (memory_) {
    const Failure failure = memory_->check(now_ns);
    if (failure.error != 0) {
      failure_ = failure;
      ++host_.stats.failed;
      return;
    }
  }
  if (has_passed()) {
    return;
  }
  if (arrived_ns_ == kUnknownNs) {
    arrived_ns_ = probed_ns_ = looked_ns_ = now_ns;
  }
  if (now_ns > looked_ns_ + kLookNs) {
    looked_ns_ = now_ns;
    look_for_gone();
  }
  if (card_) {
    check_card(now_ns);
  }
  if (options_.deadline_ms != 0 && now_ns > arrived_ns_ + options_.deadline_ms * kMsNs) {
    fail(-ETIME, rank_);
  } else if (failure_.error == 0 && now_ns > probed_ns_ + kProbeNs) {
    probed_ns_ = now_ns;
    probe();
  }
}

/// Fail the group if a barrier has failed on the card. The card names only the peer that cancelled
/// it, so wait first for a message that names the cause, or for the port to notice it.
void GroupMember::check_card(uint64_t now_ns) {
  const CardPart::Trouble& trouble = card_->trouble();
  if (failure_.error == 0 && trouble.since_ns != 0 && now_ns > trouble.since_ns + kCauseNs) {
    end(trouble.error, trouble.rank, true);
  }
}

/// Look for peers that have gone before this member had a session with them.
void GroupMember::look_for_gone() {
  host_.message_port.look_for_gone();  // another process may have its destID by now
  schedule_.for_each_peer([&](uint32_t rank) {
    if (failure_.error == 0 && !left_[rank] &&
        host_.message_port.has_gone(msg::dest_id_of(members_[rank]))) {
      end(-ECONNRESET, rank, true);
    }
  });
}

/// Send something to the peers for which this member waits: if it does not arrive, the port ends
/// the session.
void GroupMember::probe() {
  if (memory_) {
    return;  // MemoryPart::check() looks whether the processes run
  }
  for (uint64_t left = card_ ? schedule_.await : meeting_->missing(); left != 0; left &= left - 1) {
    const uint32_t rank = schedule_.peers[static_cast<uint32_t>(std::countr_zero(left))];
    if (host_.mail.waiting(members_[rank]) == 0) {
      send(rank, message(What::kAlive));
    }
  }
}

}  // namespace rio::barrier
