#include "lib/barrier/group_member.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "lib/msg/waiting.hpp"

namespace rio::barrier {
namespace {

/// A wait does the work that is due by the clock at least this often.
constexpr uint32_t kSliceMs = 50;
constexpr uint32_t kShortSliceMs = 1;  // on the card and in memory the end may wake no thread

}  // namespace

GroupMember::GroupMember(GroupHost& host, std::span<const msg::Address> members, uint32_t rank,
                         const GroupOptions& options, const Schedule& schedule, uint32_t part)
    : host_(host),
      members_(members.begin(), members.end()),
      options_(options),
      schedule_(schedule),
      rank_(rank),
      part_(part),
      agreement_(terms_of(options), *this),
      create_end_ns_(base::now_ns() + options.create_ms * kMsNs * (rank == 0 ? 4 : 5) / 4),
      sessions_(members.size()),
      left_(members.size()),
      heard_(members.size()),
      told_(members.size()) {}

GroupMember::~GroupMember() {
  if (failure_.error == 0 && agreement_.is_creating()) {
    agreement_.fail(-ECONNREFUSED, rank_);
    host_.mail.drop_joins(part_);
  } else if (failure_.error == 0 && !has_passed()) {
    end(-ECONNREFUSED, rank_, true);
  } else if (failure_.error == 0) {
    GroupMessage left = message(What::kLeft);
    left.epoch = epoch();
    for (uint32_t to = 0; to < ranks(); ++to) {
      if (sessions_[to] != 0) {
        send(to, left);
      }
    }
  }
  host_.stats.passed += memory_ && arrivals_ != 0 && memory_->has_passed() ? 1 : 0;
  host_.remove(*this);
}

Agreement::Terms GroupMember::terms_of(const GroupOptions& options) {
  Agreement::Terms terms;
  terms.key = options.key;
  const bool are_same = host_.message_port.address().empty();
  terms.digest = agreement_digest(options.members_hash == 0 && are_same
                                      ? std::span<const msg::Address>(members_)
                                      : std::span<const msg::Address>(),
                                  options.members_hash, to_string(options.scheme));
  terms.ranks = ranks();
  terms.rank = rank_;
  terms.ticket = host_.draw();
  terms.serial = host_.draw();
  const auto offer = [&](Way way, uint32_t bit, bool is_there) {
    terms.ways |= (options.way == way || options.way == Way::kAny) && is_there ? bit : 0;
  };
  regs::BarrierDesc desc;
  offer(Way::kMemory, GroupMessage::kMemoryBit, host_.node != 0);
  offer(Way::kCard, GroupMessage::kCardBit,
        host_.card != nullptr && schedule_.rounds <= host_.card->rounds() &&
            write_card_words(0, &desc));
  offer(Way::kSoftware, GroupMessage::kSoftwareBit, true);
  if (ranks() == 1) {
    terms.ways = GroupMessage::kSoftwareBit;  // a group of one passes at once
  }
  terms.node = host_.node;
  return terms;
}

GroupMessage GroupMember::message(What what) const {
  GroupMessage message;
  message.what = what;
  message.rank = rank_;
  message.key = options_.key;
  message.serial = agreement_.serial();
  return message;
}

uint32_t GroupMember::rank_of(msg::Address address) const {
  const auto found = std::find(members_.begin(), members_.end(), address);
  return found == members_.end() ? kNoPeer : static_cast<uint32_t>(found - members_.begin());
}

// Creation.

void GroupMember::begin() {
  agreement_.begin();
  note_agreement();
}

void GroupMember::send(uint32_t rank, const GroupMessage& message) {
  if (sessions_[rank] == 0) {
    sessions_[rank] = host_.mail.session_with(members_[rank]);
  }
  host_.mail.send(members_[rank], message, part_);
}

IdSet GroupMember::free_ids() {
  return host_.card != nullptr ? host_.card->free_ids(base::now_ns()) : IdSet{};
}

/// @return false: the card cannot take the schedule.
bool GroupMember::write_card_words(uint32_t id, regs::BarrierDesc* out) const {
  const DescriptorTerms terms = {.group = id};
  return write_descriptor(
             schedule_, terms, [&](uint32_t rank) { return msg::dest_id_of(members_[rank]); },
             out) == 0;
}

bool GroupMember::load(uint32_t id) {
  if (id == kNoId) {
    meeting_.emplace(schedule_, 0);
    agreement_.loaded(0);
    return true;
  }
  if (id == kMemoryId) {
    if (!memory_.emplace().load(options_.key, agreement_.serial(), ranks(), rank_)) {
      memory_.reset();
      return false;
    }
    agreement_.loaded(0);
    return true;
  }
  regs::BarrierDesc desc;
  if (host_.card == nullptr || !write_card_words(id, &desc)) {
    return false;
  }
  card_.emplace(*host_.card, agreement_, schedule_, host_.stats);
  if (card_->load(id, desc)) {
    return true;
  }
  card_.reset();
  return false;
}

void GroupMember::unload(uint32_t /*id*/) {
  meeting_.reset();
  memory_.reset();
  card_.reset();
}

Way GroupMember::way() const {
  if (agreement_.stage() != Agreement::Stage::kReady) {
    return Way::kAny;
  }
  return memory_ ? Way::kMemory : card_ ? Way::kCard : Way::kSoftware;
}

/// Take over the end of the creation.
void GroupMember::note_agreement() {
  if (agreement_.stage() == Agreement::Stage::kReady && !std::exchange(has_started_, true)) {
    if (card_) {
      card_->start();
    } else if (memory_) {
      memory_->start();
    }
  }
  if (failure_.error == 0 && agreement_.stage() == Agreement::Stage::kFailed) {
    failure_ = {agreement_.error(), agreement_.culprit()};
    ++host_.stats.failed;
    host_.mail.drop_joins(part_);
  }
}

bool GroupMember::is_of_other_session(uint32_t rank, uint32_t session) const {
  return rank != kNoPeer && sessions_[rank] != 0 && sessions_[rank] != session;
}

bool GroupMember::receive(msg::Address from, uint32_t session, const GroupMessage& message) {
  const uint32_t rank = rank_of(from);
  if (is_of_other_session(rank, session)) {
    check_sessions();
    if (is_of_other_session(rank, session)) {
      return false;  // from an earlier process at this address, or from one that has taken its
                     // place
    }
  }
  if (message.what == What::kJoin) {
    return receive_join(from, rank, message);
  }
  if (rank == kNoPeer) {
    return false;
  }
  sessions_[rank] = session;
  heard_[rank] = true;
  if (failure_.error != 0 && message.what != What::kFailed) {
    tell_failure(rank);
  }
  switch (message.what) {
    case What::kNotification:
      return receive_notification(rank, message);
    case What::kFailed:
      return receive_failure(rank, message);
    case What::kLeft:
      return message.serial == agreement_.serial() && receive_left(rank, message.epoch);
    case What::kAlive:
      return message.serial == agreement_.serial();
    default:
      break;
  }
  const bool is_due =
      failure_.error == 0 && message.rank == rank && agreement_.receive(rank, message);
  note_agreement();
  return is_due;
}

bool GroupMember::receive_join(msg::Address from, uint32_t rank, const GroupMessage& join) {
  if (agreement_.stage() == Agreement::Stage::kReady) {
    return false;  // for another group, which this member has not begun
  }
  if (!agreement_.is_creating()) {
    if (rank_ == 0 && rank != kNoPeer) {
      return agreement_.tell_late(rank, join.ticket);
    }
    if (std::find(refused_.begin(), refused_.end(), from) != refused_.end()) {
      return false;
    }
    refuse(from, join, rank);
    return true;
  }
  if (rank == kNoPeer || join.rank != rank || !agreement_.receive(rank, join)) {
    base::log_error(
        "barrier group with key %llu: destID %u has other members, another order of them, or "
        "another schedule; create it with the same list and options at all members",
        static_cast<unsigned long long>(options_.key), msg::dest_id_of(from));
    refuse(from, join, rank);
    agreement_.fail(-EINVAL, rank);
  }
  note_agreement();
  return true;
}

/// Tell the sender of a kJoin that this member does not create that group.
void GroupMember::refuse(msg::Address from, const GroupMessage& join, uint32_t rank) {
  refused_.push_back(from);
  GroupMessage failed = message(What::kFailed);
  failed.ticket = join.ticket;
  failed.error = failure_.error != 0 ? failure_.error : -EINVAL;
  failed.culprit = kNoPeer;
  if (rank != kNoPeer) {
    send(rank, failed);
  } else {
    host_.mail.send(from, failed, part_);
  }
}

bool GroupMember::receive_failure(uint32_t rank, const GroupMessage& failure) {
  if (failure_.error != 0) {
    return true;
  }
  GroupMessage known = failure;
  if (known.culprit >= ranks()) {
    known.culprit = known.error == -EINVAL ? rank : kNoPeer;
  }
  if (agreement_.is_creating()) {
    const bool is_due = agreement_.receive(rank, known);
    note_agreement();
    return is_due;
  }
  if (known.serial != agreement_.serial() || known.error == -EAGAIN) {
    return false;  // -EAGAIN is an answer to kJoin alone
  }
  // The sender tells all members. If it dies meanwhile, their peers tell the others.
  end(known.error, known.culprit, false);
  return true;
}

// Barriers.

int GroupMember::ready() const {
  if (failure_.error != 0) {
    return failure_.error;
  }
  return agreement_.stage() == Agreement::Stage::kReady ? 1 : 0;
}

int GroupMember::arrive(std::span<const uint8_t> shows) {
  if (failure_.error != 0) {
    return failure_.error;
  }
  if (agreement_.stage() != Agreement::Stage::kReady) {
    return -EAGAIN;
  }
  if (!has_passed()) {
    return -EBUSY;
  }
  if (!shows.empty() && shows.size() > shown_most()) {
    return -EMSGSIZE;
  }
  if (first_left_ != kNoPeer && epoch() == left_epoch_) {
    end(-ECONNREFUSED, first_left_, true);
    return failure_.error;
  }
  if (const int rc = card_ ? card_->arrive() : 0; rc != 0) {
    return rc;
  }
  ++arrivals_;
  arrived_ns_ = kUnknownNs;  // arriving takes less time than a look at the clock
  if (card_) {
    return 0;
  }
  if (memory_) {
    host_.stats.passed +=
        arrivals_ > 1 ? 1 : 0;  // the previous barrier: perhaps no call saw its end
    memory_->arrive(shows);
    return 0;
  }
  meeting_->arrive(
      [&](uint32_t rank, uint32_t round) { send_notification(rank, round, meeting_->epoch()); });
  host_.stats.passed += meeting_->has_passed() ? 1 : 0;
  return 0;
}

void GroupMember::send_notification(uint32_t rank, uint32_t round, uint32_t epoch) {
  GroupMessage notification = message(What::kNotification);
  notification.round = static_cast<uint8_t>(round);
  notification.epoch = epoch;
  send(rank, notification);
}

bool GroupMember::receive_notification(uint32_t rank, const GroupMessage& notification) {
  if (!meeting_ || notification.serial != agreement_.serial() || notification.rank != rank) {
    return false;
  }
  if (failure_.error != 0) {
    return true;  // a barrier that has failed is not passed later
  }
  const bool is_under_way = !meeting_->has_passed();
  const Meeting::Taken taken = meeting_->receive(
      rank, notification.round, notification.epoch,
      [&](uint32_t to, uint32_t round) { send_notification(to, round, meeting_->epoch()); });
  ++host_.stats.notifications;
  host_.stats.early += taken == Meeting::Taken::kEarly ? 1 : 0;
  host_.stats.passed += is_under_way && meeting_->has_passed() ? 1 : 0;
  return taken != Meeting::Taken::kForeign;
}

int GroupMember::test() const {
  if (arrivals_ != 0 && has_passed()) {
    return 1;
  }
  return failure_.error != 0 ? failure_.error : arrivals_ == 0 ? 1 : 0;
}

// Waits.

int GroupMember::wait_for(uint32_t timeout_ms, const std::function<bool()>& is_done) {
  uint32_t slice_ms = kShortSliceMs;
  {
    const msg::Guard guard(host_.message_port);
    slice_ms = meeting_ ? kSliceMs : kShortSliceMs;
  }
  return host_.wait_for(timeout_ms, slice_ms, is_done);
}

int GroupMember::wait_ready(uint32_t timeout_ms) {
  const int rc = wait_for(timeout_ms, [&] { return ready() != 0; });
  const msg::Guard guard(host_.message_port);
  return ready() != 0 ? ready() : std::min(rc, 0);
}

int GroupMember::wait(uint32_t timeout_ms) {
  const int rc = wait_for(timeout_ms, [&] { return test() != 0; });
  const msg::Guard guard(host_.message_port);
  return test() != 0 ? test() : std::min(rc, 0);
}

}  // namespace rio::barrier
