#include "lib/barrier/agreement.hpp"

#include <algorithm>
#include <string>

#include "base/hash.hpp"
#include "base/random.hpp"

namespace rio::barrier {
namespace {

constexpr uint32_t kAttemptsMax = 8;  // proposals of numbers
constexpr uint32_t kRoot = 0;

}  // namespace

uint64_t agreement_digest(std::span<const uint32_t> members, uint64_t members_hash,
                          std::string_view scheme) {
  std::string text(reinterpret_cast<const char*>(members.data()), members.size_bytes());
  text += std::to_string(members_hash);
  text += scheme;
  return base::fnv1a<uint64_t>(text);
}

Agreement::Agreement(const Terms& terms, Ends& ends)
    : terms_(terms), ends_(ends), ways_(terms.ways) {
  if (is_root()) {
    serial_ = terms.serial;
    tickets_.resize(terms.ranks);
    answered_.resize(terms.ranks);
    tickets_[kRoot] = terms.ticket;
  }
}

GroupMessage Agreement::message(What what) const {
  GroupMessage message;
  message.what = what;
  message.rank = terms_.rank;
  message.key = terms_.key;
  message.serial = serial_;
  message.ticket = terms_.ticket;
  return message;
}

void Agreement::begin() {
  is_join_due_ = false;
  GroupMessage join = message(What::kJoin);
  join.serial = 0;
  join.ranks = terms_.ranks;
  join.ways = terms_.ways;
  join.digest = terms_.digest;
  join.ids = ends_.free_ids();
  join.node = terms_.node;
  if (!is_root()) {
    ends_.send(kRoot, join);
    return;
  }
  for (uint32_t rank = 1; rank < terms_.ranks; ++rank) {
    ends_.send(rank, join);
  }
  ids_ = join.ids;
  note_join();
}

bool Agreement::receive(uint32_t rank, const GroupMessage& message) {
  switch (message.what) {
    case What::kJoin:
      return take_join(rank, message);
    case What::kPropose:
      return rank == kRoot && take_proposal(message);
    case What::kLoaded:
    case What::kDenied:
      return is_root() && take_answer(rank, message);
    case What::kRun:
      if (rank != kRoot || stage_ != Stage::kLoaded || message.serial != serial_) {
        return false;
      }
      stage_ = Stage::kReady;
      return true;
    case What::kFailed:
      return take_failure(rank, message);
    default:
      return false;
  }
}

bool Agreement::take_join(uint32_t rank, const GroupMessage& join) {
  if (join.digest != terms_.digest || join.ranks != terms_.ranks) {
    return false;
  }
  if (!is_root()) {
    if (rank == kRoot && is_join_due_) {
      begin();
    }
    return rank == kRoot;  // it says that it creates the same group
  }
  if (stage_ != Stage::kJoining || tickets_[rank] != 0) {
    return false;
  }
  tickets_[rank] = join.ticket;
  ways_ &= join.ways;
  if (join.node != terms_.node || terms_.node == 0) {
    ways_ &= ~GroupMessage::kMemoryBit;
  }
  ids_ &= join.ids;
  note_join();
  return true;
}

void Agreement::note_join() {
  if (++joins_ == terms_.ranks) {
    propose();
  }
}

/// Rank 0, once all members have joined or answered: propose shared memory, a number, or software.
void Agreement::propose() {
  const bool by_memory = (ways_ & GroupMessage::kMemoryBit) != 0;
  const bool by_card =
      (ways_ & GroupMessage::kCardBit) != 0 && !ids_.empty() && attempt_ < kAttemptsMax;
  if (!by_memory && !by_card && (ways_ & GroupMessage::kSoftwareBit) == 0) {
    fail((ways_ & GroupMessage::kCardBit) != 0 ? -EBUSY : -ENOTSUP, kNoPeer);
    return;
  }
  ++attempt_;
  answers_ = 0;
  is_denied_ = false;
  std::fill(answered_.begin(), answered_.end(), false);
  // Random, so that creations that are under way at once rarely choose the same number.
  const auto start = static_cast<uint32_t>(base::mix64(uint64_t{serial_} << 32 | attempt_) % kIds);
  const uint32_t id = by_memory ? kMemoryId : by_card ? ids_.first_from(start) : kNoId;
  const uint32_t attempt = attempt_;
  prepare(id);  // before the others, which open the memory that it makes
  if (attempt_ != attempt || !is_creating()) {
    return;  // a group of one has gone on
  }
  GroupMessage proposal = message(What::kPropose);
  proposal.id = static_cast<uint8_t>(id);
  proposal.attempt = attempt_;
  for (uint32_t rank = 1; rank < terms_.ranks; ++rank) {
    proposal.ticket = tickets_[rank];
    ends_.send(rank, proposal);
  }
}

bool Agreement::take_proposal(const GroupMessage& proposal) {
  if (!is_creating() || proposal.ticket != terms_.ticket || proposal.attempt <= attempt_ ||
      (serial_ != 0 && proposal.serial != serial_)) {
    return false;
  }
  serial_ = proposal.serial;
  attempt_ = proposal.attempt;
  prepare(proposal.id);
  return true;
}

/// Get ready with a number (or kMemoryId, kNoId), in place of an earlier one.
void Agreement::prepare(uint32_t id) {
  if (is_loaded_) {
    ends_.unload(id_);
  }
  stage_ = Stage::kLoading;
  id_ = id;
  is_loaded_ = true;
  if (ends_.load(id)) {
    return;
  }
  is_loaded_ = false;
  id_ = kNoId;
  const IdSet free = ends_.free_ids();
  if (is_root()) {
    note_answer(kRoot, &free);
    return;
  }
  GroupMessage denied = message(What::kDenied);
  denied.attempt = attempt_;
  denied.ids = free;
  ends_.send(kRoot, denied);
}

void Agreement::loaded(int error) {
  if (stage_ != Stage::kLoading) {
    return;
  }
  if (error != 0) {
    fail(error, terms_.rank);
    return;
  }
  stage_ = Stage::kLoaded;
  if (is_root()) {
    note_answer(kRoot, nullptr);
    return;
  }
  GroupMessage answer = message(What::kLoaded);
  answer.attempt = attempt_;
  ends_.send(kRoot, answer);
}

bool Agreement::take_answer(uint32_t rank, const GroupMessage& answer) {
  const bool is_due = is_creating() && answer.serial == serial_ && answer.attempt == attempt_ &&
                      attempt_ != 0 && !answered_[rank];
  if (is_due) {
    note_answer(rank, answer.what == What::kDenied ? &answer.ids : nullptr);
  }
  return is_due;
}

/// @param denied null: the rank is ready; else the numbers that it has free.
void Agreement::note_answer(uint32_t rank, const IdSet* denied) {
  answered_[rank] = true;
  if (denied != nullptr) {
    is_denied_ = true;
    ids_ &= *denied;
    ways_ &= ~GroupMessage::kMemoryBit;  // memory is proposed first, and only once
  }
  if (++answers_ == terms_.ranks) {
    if (is_denied_) {
      propose();
    } else {
      run();
    }
  }
}

void Agreement::run() {
  stage_ = Stage::kReady;
  for (uint32_t rank = 1; rank < terms_.ranks; ++rank) {
    ends_.send(rank, message(What::kRun));
  }
}

bool Agreement::take_failure(uint32_t rank, const GroupMessage& failure) {
  // Members put their own ticket into a message, and rank 0 the ticket of the receiver.
  const bool is_own = failure.ticket == terms_.ticket ||
                      (is_root() && failure.ticket == tickets_[rank] && failure.ticket != 0);
  if (!is_creating() || !is_own) {
    return false;
  }
  if (failure.error == -EAGAIN) {
    is_join_due_ = rank == kRoot && stage_ == Stage::kJoining;
    return is_join_due_;
  }
  if (is_root()) {
    fail(failure.error, failure.culprit);
  } else {
    end(failure.error, failure.culprit);  // rank 0 tells the others
  }
  return true;
}

void Agreement::fail(int error, uint32_t culprit) {
  if (!is_creating()) {
    return;
  }
  end(error, culprit);
  GroupMessage failed = message(What::kFailed);
  failed.error = error;
  failed.culprit = culprit;
  if (!is_root()) {
    ends_.send(kRoot, failed);
    return;
  }
  for (uint32_t rank = 1; rank < terms_.ranks; ++rank) {
    if (tickets_[rank] != 0) {
      failed.ticket = tickets_[rank];
      ends_.send(rank, failed);
    }
  }
}

void Agreement::end(int error, uint32_t culprit) {
  stage_ = Stage::kFailed;
  error_ = error;
  culprit_ = culprit;
  if (is_loaded_) {
    is_loaded_ = false;
    ends_.unload(id_);
  }
}

bool Agreement::tell_late(uint32_t rank, uint32_t ticket) {
  if (tickets_[rank] != 0) {
    return false;
  }
  tickets_[rank] = ticket;
  GroupMessage failed = message(What::kFailed);
  failed.ticket = ticket;
  failed.error = error_;
  failed.culprit = culprit_;
  ends_.send(rank, failed);
  return true;
}

uint32_t Agreement::missing() const {
  if (!is_root()) {
    return kRoot;
  }
  if (const auto found = std::find(tickets_.begin(), tickets_.end(), 0u); found != tickets_.end()) {
    return static_cast<uint32_t>(found - tickets_.begin());
  }
  const auto found = std::find(answered_.begin(), answered_.end(), false);
  return found == answered_.end() ? kNoPeer : static_cast<uint32_t>(found - answered_.begin());
}

}  // namespace rio::barrier
