#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/own_folder.hpp"
#include "base/random.hpp"
#include "lib/barrier/card_barriers.hpp"
#include "lib/barrier/early_joins.hpp"
#include "lib/barrier/group_host.hpp"
#include "lib/barrier/group_member.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/waiting.hpp"

namespace rio::barrier {
namespace {

constexpr uint32_t kCreateMsMax = 3'600'000;
/// Answers that wait for a peer; one that takes none gets no more.
constexpr uint32_t kAnswersMax = 16384;
/// Calls of attend() between looks at the clock while no group is being created. A look costs more
/// than all else in a call, and what is due by the clock is due in milliseconds.
constexpr uint32_t kCallsPerLook = 32;

/// Check what create_group() is given. @return 0, -EINVAL, -E2BIG; logged.
int check(std::span<const msg::Address> members, uint32_t rank, const GroupOptions& options,
          msg::Address self) {
  std::string error;
  if (rank >= members.size() || members[rank] != self) {
    base::log_error(
        "barrier group: rank %u of %zu members is not this context, %u:%u; give the "
        "place of this member in the list",
        rank, members.size(), msg::dest_id_of(self), msg::context_of(self));
    return -EINVAL;
  }
  std::vector<uint32_t> dest_ids;
  for (const msg::Address member : members) {
    if (msg::context_of(member) >= msg::kContexts) {
      base::log_error("barrier group: a member has the context %u; contexts are below %u",
                      msg::context_of(member), msg::kContexts);
      return -EINVAL;
    }
    dest_ids.push_back(msg::dest_id_of(member));
  }
  std::sort(dest_ids.begin(), dest_ids.end());
  if (const auto twice = std::adjacent_find(dest_ids.begin(), dest_ids.end());
      twice != dest_ids.end()) {
    base::log_error("barrier group: destID %u is there twice; give one member a card", *twice);
    return -EINVAL;
  }
  if (options.create_ms == 0 || options.create_ms > kCreateMsMax) {
    base::log_error("barrier group: create_ms is %u; it is 1 to %u", options.create_ms,
                    kCreateMsMax);
    return -EINVAL;
  }
  const int rc = check_fits(options.scheme, static_cast<uint32_t>(members.size()), &error);
  if (rc != 0) {
    base::log_error("barrier group: %s", error.c_str());
  }
  return rc;
}

class Barriers final : public BarrierContext, private GroupHost {
 public:
  Barriers(msg::MessagePort& port_of, std::unique_ptr<msg::MessageContext> message_context,
           std::unique_ptr<CardBarriers> card_of)
      : GroupHost(*this, port_of, mail_, stats_, card_of.get(), node_mark()),
        card_barriers_(std::move(card_of)),
        context_(std::move(message_context)),
        mail_(port_of, context_->id()),
        random_(base::now_ns() ^ uint64_t{port_of.instance()} << 32),
        ended_(port_of.sessions_ended()) {}

  [[nodiscard]] msg::Address self() const override {
    return msg::address(message_port.dest_id(), context_->id());
  }
  [[nodiscard]] msg::MessagePort& port() override { return message_port; }
  [[nodiscard]] int create_group(std::span<const msg::Address> members, uint32_t rank,
                                 const GroupOptions& options, std::unique_ptr<Group>* out) override;
  void progress() override {
    message_port.progress();
    until_look_ = 1;
    attend();
  }
  void attend() override;
  [[nodiscard]] int flush(uint32_t timeout_ms) override;
  [[nodiscard]] BarrierStats stats() const override { return stats_; }

 private:
  // GroupHost.
  uint32_t draw() override {
    for (;;) {
      if (const auto number = static_cast<uint32_t>(random_.next()); number != 0) {
        return number;
      }
    }
  }
  [[nodiscard]] int wait_for(uint32_t timeout_ms, uint32_t slice_ms,
                             const std::function<bool()>& is_done) override;
  void remove(GroupMember& member) override {
    groups_.erase(member.key());
    std::erase(members_, &member);
  }

  void take_arrivals();
  void take(msg::Address from, uint32_t session, const GroupMessage& message);
  void keep_early(msg::Address from, uint32_t session, const GroupMessage& join);
  void check_sessions();
  void check_unsent();
  void check_time();

  BarrierStats stats_;
  std::unique_ptr<CardBarriers> card_barriers_;
  std::unique_ptr<msg::MessageContext> context_;
  Mail mail_;
  EarlyJoins early_;
  base::Random random_;
  std::unordered_map<uint64_t, GroupMember*> groups_;  // by key
  std::vector<GroupMember*> members_;
  uint32_t last_part_ = 0;
  uint32_t until_look_ = 1;  // calls of attend() until check_time()
  uint64_t ended_;
};

int Barriers::create_group(std::span<const msg::Address> members, uint32_t rank,
                           const GroupOptions& options, std::unique_ptr<Group>* out) {
  if (const int rc = check(members, rank, options, self()); rc != 0) {
    return rc;
  }
  if (groups_.count(options.key) != 0) {
    base::log_error("barrier group: key %llu is that of another group here; give each its own",
                    static_cast<unsigned long long>(options.key));
    return -EEXIST;
  }
  // Without its only way this member joins all the same, so that the others are told.
  if (options.way == Way::kCard && card == nullptr) {
    base::log_error(
        "barrier group: there is no barrier engine here, or another context has it; let it run in "
        "software");
  }
  if (options.way == Way::kMemory && node == 0) {
    base::log_error("barrier group: %s is no folder for shared memory; set RIO_RUNTIME_DIR",
                    base::runtime_base().c_str());
  }
  Schedule schedule;
  const auto ranks = static_cast<uint32_t>(members.size());
  if (const int rc = make_schedule(options.scheme, ranks, rank, &schedule); rc != 0) {
    return rc;
  }
  GroupHost& host = *this;
  auto member = std::make_unique<GroupMember>(host, members, rank, options, schedule, ++last_part_);
  groups_.emplace(options.key, member.get());
  members_.push_back(member.get());
  until_look_ = 1;
  member->begin();
  check_sessions();
  for (const EarlyJoins::Join& join : early_.take(options.key)) {
    take(join.from, join.session, join.message);
  }
  *out = std::move(member);
  return 0;
}

int Barriers::wait_for(uint32_t timeout_ms, uint32_t slice_ms,
                       const std::function<bool()>& is_done) {
  const uint64_t end_ns = base::now_ns() + timeout_ms * kMsNs;
  for (;;) {
    const uint64_t now_ns = base::now_ns();
    const uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns + kMsNs - 1) / kMsNs : 0;
    const int rc = msg::wait(
        message_port, static_cast<uint32_t>(std::min<uint64_t>(left_ms, slice_ms)),
        [&] { progress(); }, is_done);
    if (rc != 0 || left_ms == 0) {
      return rc;
    }
  }
}

void Barriers::attend() {
  if (card != nullptr && card->is_busy()) {
    card->reap();
  }
  take_arrivals();
  if (!mail_.is_empty()) {
    mail_.work(base::now_ns());
  }
  if (message_port.sessions_ended() != ended_) {
    check_sessions();
  }
  if (mail_.has_unsent()) {
    check_unsent();
  }
  if (--until_look_ == 0) {
    check_time();
  }
}

/// Do what is due by the clock, and plan the next look at it. A caller that sleeps between its
/// calls makes few of them.
void Barriers::check_time() {
  until_look_ = message_port.config().sleeps ? 1 : kCallsPerLook;
  const uint64_t now_ns = base::now_ns();
  const int error = message_port.error();
  for (GroupMember* const member : members_) {
    if (error != 0) [[unlikely]] {
      member->fail(error, kNoPeer);
    }
    member->check_time(now_ns);
    if (member->is_creating()) {
      until_look_ = 1;
    }
  }
}

void Barriers::take_arrivals() {
  while (!context_->inbox().empty()) {
    const msg::Delivery delivery = context_->take_oldest();
    const msg::Origin& origin = delivery.origin;
    GroupMessage message;
    if (delivery.kind == msg::Kind::kData &&
        read({static_cast<const uint8_t*>(delivery.bytes.iov_base), delivery.bytes.iov_len},
             &message)) {
      take(msg::address(origin.link->dest_id(), origin.from), origin.session, message);
    } else {
      ++stats_.foreign;
    }
    context_->give_back(delivery);
  }
}

void Barriers::take(msg::Address from, uint32_t session, const GroupMessage& message) {
  const auto found = groups_.find(message.key);
  if (found != groups_.end() && found->second->receive(from, session, message)) {
    return;
  }
  if (message.what == What::kJoin) {
    keep_early(from, session, message);
    return;
  }
  const bool has_given_up = message.what == What::kFailed && early_.drop(from, message.ticket);
  // Members that leave tell each other: a farewell may come when this member's part has gone.
  const bool is_farewell =
      message.what == What::kLeft || message.what == What::kFailed || message.what == What::kAlive;
  if (!has_given_up && !(found == groups_.end() && is_farewell)) {
    ++stats_.foreign;
  }
}

/// Keep the join to a group that this member may begin to create later.
void Barriers::keep_early(msg::Address from, uint32_t session, const GroupMessage& join) {
  if (early_.add({from, session, join})) {
    return;
  }
  ++stats_.foreign;
  if (join.rank == 0 || mail_.waiting(from) >= kAnswersMax) {
    return;  // rank 0 waits for this member's kJoin in any case
  }
  GroupMessage failed;
  failed.what = What::kFailed;
  failed.key = join.key;
  failed.ticket = join.ticket;
  failed.error = -EAGAIN;
  failed.culprit = kNoPeer;
  mail_.send(from, failed, 0);
}

void Barriers::check_sessions() {
  ended_ = message_port.sessions_ended();
  early_.drop_ended(
      [&](const EarlyJoins::Join& join) { return mail_.session_with(join.from) != join.session; });
  for (GroupMember* const member : members_) {
    member->check_sessions();
  }
}

void Barriers::check_unsent() {
  for (const Mail::Unsent& unsent : mail_.take_unsent()) {
    for (GroupMember* const member : members_) {
      if (member->part() == unsent.part) {
        member->note_unsent(unsent.to, unsent.error);
      }
    }
  }
}

int Barriers::flush(uint32_t timeout_ms) {
  const uint64_t end_ns = base::now_ns() + uint64_t{timeout_ms} * 1'000'000;
  while (!mail_.is_empty()) {
    progress();
    if (message_port.error() != 0) {
      return message_port.error();
    }
    if (base::now_ns() > end_ns) {
      return -ETIMEDOUT;
    }
  }
  return message_port.flush(timeout_ms);
}

}  // namespace

int BarrierContext::create(msg::MessagePort& port, uint16_t number,
                           std::unique_ptr<BarrierContext>* out) {
  std::unique_ptr<msg::MessageContext> context;
  if (const int rc = msg::MessageContext::create(port, number, &context); rc != 0) {
    return rc;
  }
  *out = std::make_unique<Barriers>(port, std::move(context), CardBarriers::open(port));
  return 0;
}

}  // namespace rio::barrier
