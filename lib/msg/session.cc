// Who talks to whom: hello, welcome, and the end of it. What has to be said is noted in the link
// and said when there is room, so nothing here ever waits.
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "lib/msg/clock.hpp"
#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kShareMin = 4;
constexpr uint32_t kSharesFree = 16;

}  // namespace

void Port::want(Link& link) {
  if (!link.say.listed) {
    link.say.listed = true;
    talkers_.push_back(link.index());
  }
}

void Port::speak() {
  // Those that could not say everything stay in the list.
  std::vector<uint32_t> now;
  now.swap(talkers_);
  for (const uint32_t index : now) {
    if (index == kResets) {
      if (!say_resets()) {
        talkers_.push_back(kResets);
      }
      continue;
    }
    Link& link = *links_[index];
    link.say.listed = false;
    if (!speak(link)) {
      want(link);
    }
  }
}

bool Port::speak(Link& link) {
  if (error_ != 0) {
    return true;
  }
  if (link.state == LinkState::kIdle && link.say.open != 0) {
    ask(link);  // also who rests is waited for only so long
  }
  if (link.rest.on) {
    return true;  // end_rest() wants it again
  }
  const auto each = [&](uint64_t* bits, auto&& say_it) {
    for (; *bits != 0; *bits &= *bits - 1) {
      if (!say_it(static_cast<uint16_t>(__builtin_ctzll(*bits)))) {
        return false;
      }
    }
    return true;
  };
  if (link.say.welcome) {
    link.say.welcome = !say_session(link, Kind::kWelcome);
  }
  if (link.say.hello) {
    link.say.hello = !say_session(link, Kind::kHello);
  }
  if (link.state != LinkState::kUp) {
    return !link.say.hello && !link.say.welcome;
  }
  if (link.say.alive) {
    link.say.alive = !say(link, Kind::kAlive, 0, 0, 0);
  }
  if (link.say.control) {
    link.say.control = !say_total(link, Kind::kControl, 0, link.large.control_in);
  }
  return !link.say.welcome && !link.say.alive && !link.say.control &&
         each(&link.say.opened,
              [&](uint16_t c) { return say(link, Kind::kOpened, 0, c, link.in[c].tell()); }) &&
         each(&link.say.refused,
              [&](uint16_t c) {
                if (!say(link, Kind::kRefused, 0, c, link.in[c].half)) {
                  return false;
                }
                told_at_[c] = tx_->next_index();
                // Now the peer counts from zero again.
                if (!link.in[c].open) {
                  link.in[c] = {};
                  link.large.records_in[c] = {};
                }
                return true;
              }) &&
         each(&link.say.credit,
              [&](uint16_t c) { return say_total(link, Kind::kCredit, c, link.in[c]); }) &&
         each(&link.say.records,
              [&](uint16_t c) { return say_total(link, Kind::kRecords, c, link.large.records_in[c]); }) &&
         each(&link.say.open, [&](uint16_t c) {
           if (!say(link, Kind::kOpen, c, 0, 0)) {
             return false;
           }
           link.theirs.asked |= 1ull << c;
           return true;
         });
}

/// It may have been told by another message meanwhile.
bool Port::say_total(Link& link, Kind kind, uint32_t from, RecvAccount& account) {
  if (account.changed() && !say(link, kind, 0, from, account.limit())) {
    return false;
  }
  static_cast<void>(account.tell());
  return true;
}

/// No link is made for it, and what does not fit in is dropped: who sends more is told then.
void Port::on_unknown(const Reset& reset) {
  const auto pending = std::find_if(resets_.begin(), resets_.end(), [&](const Reset& other) {
    return other.dest_id == reset.dest_id && other.key == reset.key;
  });
  if (pending != resets_.end()) {
    const bool is_before = static_cast<int32_t>(reset.number - pending->number) < 0;
    pending->number = is_before ? reset.number : pending->number;
    return;
  }
  if (resets_.size() == kResetsMax || reset.tries == kResetTries) {
    return;
  }
  if (resets_.empty()) {
    talkers_.push_back(kResets);
  }
  resets_.push_back(reset);
}

bool Port::say_resets() {
  while (!resets_.empty() && error_ == 0) {
    if (!take_room()) {
      return false;
    }
    const Reset reset = resets_.back();
    resets_.pop_back();
    const Link* const link = known_link(reset.dest_id);
    if (link != nullptr && link->rest.on) {
      continue;  // it is told when it speaks
    }
    // The number, which such messages do not have otherwise, says how often it was tried.
    const HeaderWords header = {HeaderWords::key_and_number(0, reset.tries),
                                HeaderWords::rest_of(0, 0, 0, Kind::kReset, 0)};
    const SessionBody body = {kMagic, reset.key, 0, reset.number, instance_, 0};
    static_cast<void>(say_session(reset.dest_id, header, body));
  }
  return true;
}

void Port::on_session(uint32_t source, const uint8_t* buffer, uint32_t length_bytes) {
  Header header;
  SessionBody body;
  if (length_bytes != sizeof(header) + sizeof(body)) {
    ++stats_.bad;
    return;
  }
  std::memcpy(&header, buffer, sizeof(header));
  std::memcpy(&body, buffer + sizeof(header), sizeof(body));
  if (body.magic != kMagic) {
    ++stats_.bad;
    return;
  }
  // The card tells that somebody has died before it takes anything from who has that destID now.
  // Heard of later, the news would end the new one's session. What the dead one has sent came
  // before this, and is taken.
  look_at_events(false);
  if (gone_.count(source) != 0) {
    ++stats_.bad;  // somebody said it who has died since: a session would be one with nobody
    return;
  }
  if (header.kind == Kind::kHello) {
    on_hello(source, body);
    return;
  }
  Link* const link = known_link(source);
  if (link == nullptr) {
    ++stats_.bad;
    return;
  }
  const bool is_answer = header.kind == Kind::kWelcome && body.session != 0;
  if (header.kind == Kind::kReset && link->keys.remote == body.session &&
      link->state == LinkState::kUp) {
    forget_peer(*link, &body.first);
  } else if (header.kind == Kind::kReset && link->keys.former == body.session) {
    reset_late(*link, body.first);
  } else if (is_answer && body.peer == link->keys.local && is_asked(*link)) {
    if (meet(*link, body)) {
      begin_session(*link);
      link->say.welcome = true;  // the peer waits for the same
    }
  } else if (!is_answer || link->keys.remote != body.session) {
    ++stats_.bad;  // an answer to another question, or nothing that we know
  }
}

/// A link is never freed, so those whom nobody here asked for get no more than their part.
Link* Port::link_of_hello(uint32_t source) {
  return known_link(source) != nullptr || links_.size() < kStrangersMax ? link(source) : nullptr;
}

void Port::on_hello(uint32_t source, const SessionBody& body) {
  Link* const link = body.session != 0 ? link_of_hello(source) : nullptr;
  if (link == nullptr) {
    ++stats_.bad;
    return;
  }
  const bool knows = body.peer == link->keys.local;
  // Where two ask each other one answers: both could change their keys for ever.
  if (!knows && link->state == LinkState::kHello && dest_id_ < source) {
    if (link->keys.remote != 0 && link->keys.remote != body.session) {
      forget_peer(*link);
    }
    return;
  }
  if (!meet(*link, body)) {
    static_cast<void>(meet(*link, body));  // nobody is known now
  } else if (knows || link->state == LinkState::kUp) {
    begin_session(*link);
  }
  link->say.hello = false;
  link->say.welcome = true;
  want(*link);
}

/// Whether we have named our key to the peer, and are not sure that it was heard.
bool Port::is_asked(const Link& link) {
  return link.state == LinkState::kHello ||
         (link.state == LinkState::kIdle && link.keys.remote != 0);
}

/// The peer names its key. @return false: there was another one before, which is over; who had that
/// may have sent something with our key, so there is a new one.
bool Port::meet(Link& link, const SessionBody& body) {
  if (link.keys.remote != 0 && link.keys.remote != body.session) {
    forget_peer(link);
    return false;
  }
  if (link.keys.remote == 0) {
    link.next_out = HeaderWords::key_and_number(body.session, body.first);
  }
  link.keys.remote = body.session;
  link.keys.warned = link.keys.warned && link.instance == body.instance;
  link.instance = body.instance;
  return true;
}

/// Whoever the peer was, it is no more.
/// @param not_taken null, or the first message that the peer's present process did not receive.
void Port::forget_peer(Link& link, const uint32_t* not_taken) {
  if (link.state == LinkState::kUp) {
    reap();  // failed messages are then queued for retransmission; or this ends the session
    if (link.state == LinkState::kUp) {
      const uint64_t lost = find_lost(link, link.keys.remote, not_taken);
      end_session(link, -ECONNRESET, lost);
    }
    return;
  }
  link.keys.remote = 0;
  link.next_out = 0;
  link.say.welcome = false;
  renew(link);
  if (link.state == LinkState::kHello) {
    link.say.hello = true;
    want(link);
  }
}

void Port::meet_instance(uint32_t dest_id, uint32_t instance) {
  look_at_events(true);
  Link* const link = known_link(dest_id);
  if (link != nullptr && link->instance != instance && link->keys.remote != 0) {
    forget_peer(*link);
  }
}

void Port::begin_session(Link& link) {
  link.state = LinkState::kUp;
  link.clock.deadline_ns = 0;
  link.rest.since_ns = now_ns();  // was heard: what he was silent before is not held against it
  want(link);
}

void Port::cut_off(Link& link) {
  ++stats_.cut_off;
  if (!link.keys.warned) {  // once, since it may go on
    link.keys.warned = true;
    base::log_warning(
        "destID %u broke the rules of its session, which is over; it runs another "
        "release, or means harm",
        link.dest_id());
  }
  on_unknown({link.dest_id(), link.keys.local, link.next_in(), 0});
  end_session(link, -EPROTO);
}

/// @param lost a value for Link::lost.
void Port::end_session(Link& link, int error, uint64_t lost) {
  Numbered early{};
  while (link.drop(&early)) {
    drop(early);
  }
  for (uint32_t i = 0; i < kContexts; ++i) {
    close_inflow(link, i);
  }
  link.in.fill({});
  link.out.fill({});
  link.backlog.kept_back.fill(0);
  link.backlog.held = false;
  link.clock.missing_ns = 0;
  link.backlog.again = link.backlog.resent = 0;
  link.large.records_in.fill({});
  link.large.records_out.fill({});
  link.large.control_in = RecvAccount(kControlCredits);
  link.large.control_out = SendAccount(kControlCredits);
  link.large.answers = 0;
  if (receiver_ != nullptr) {
    sender().end_session(link, error);
    receiver().end_session(link, error);
  }
  // Who was about to send hears of it; who never did has nothing to hear.
  if (link.state == LinkState::kUp && (link.theirs.asked != 0 || link.say.open != 0)) {
    link.routes.untold = link.routes.routed;
  } else {
    link.routes.untold |= link.routes.waiting;
  }
  tell_senders(link);
  link.error = error;
  link.lost |= lost;
  link.were_open = link.theirs.opened;
  link.keys.former = link.keys.remote;
  ++sessions_ended_;
  link.routes.waiting = 0;
  link.state = LinkState::kIdle;
  link.say.open = link.theirs.asked = link.theirs.refused = link.say.opened = link.say.refused = 0;
  link.say.credit = link.say.records = link.theirs.opened = 0;
  link.say.control = false;
  link.say.hello = link.say.welcome = link.say.alive = link.clock.stuck = false;
  link.clock.deadline_ns = 0;
  link.keys.remote = 0;
  link.next_out = 0;
  ++link.session;
  renew(link);
}

/// What is not held of a share can be given to others; what was taken comes back one by one.
void Port::close_inflow(Link& link, uint32_t context) {
  Inflow& flow = link.in[context];
  if (flow.open) {
    flow.half = flow.arrived();
    shares_.put(flow.close());
    flow.open = false;
    flow.early = 0;
    records_lent_.put(link.large.records_in[context].debt());
    static_cast<void>(link.large.records_in[context].close());
  }
}

void Port::open_inflow(Link& link, uint32_t context) {
  Inflow& flow = link.in[context];
  if (contexts_[context] == nullptr) {
    link.say.refused |= 1ull << context;
    want(link);
    return;
  }
  if (!flow.open) {
    // The more is taken, the less a newcomer gets. Who gets nothing can still ask for each message.
    const uint32_t most =
        std::min(config_.share, std::max(kShareMin, shares_.free() / kSharesFree));
    const bool there = shares_.take_all(most);
    if (!there && !contexts_[context]->all_may_ask_) {
      link.say.refused |= 1ull << context;
      want(link);
      return;
    }
    flow = Inflow(there ? static_cast<uint16_t>(most) : 0);
    link.large.records_in[context] = RecvAccount(kRecordWindow);
  }
  link.say.opened |= 1ull << context;
  want(link);
}

/// Somebody had to ask where he could have sent: he gets more, if there is more.
void Port::grow_inflow(Link& link, uint32_t context) {
  Inflow& flow = link.in[context];
  const uint32_t lacks = config_.share - std::min<uint32_t>(config_.share, flow.window());
  const uint32_t more = std::min(lacks, shares_.free() / kSharesFree);
  if (more >= kShareMin && shares_.take_all(more)) {
    flow.grow(static_cast<uint16_t>(more));
    flow.half = flow.window() / 2;
    link.say.credit |= 1ull << context;
    want(link);
  }
}

void Port::close_context(uint16_t id) {
  for (const std::unique_ptr<Link>& link : links_) {
    const uint64_t bit = 1ull << id;
    link->routes.routed &= ~bit;
    link->routes.waiting &= ~bit;
    link->routes.untold &= ~bit;
    link->lost &= ~bit;
    std::erase_if(link->unsent, [&](const Again& message) {
      return load_header(message.bytes.data()).from() == id;
    });
    link->say.credit &= ~bit;
    link->say.records &= ~bit;
    if (receiver_ != nullptr) {
      receiver().revoke(*link, id);
    }
    if (!link->in[id].open) {
      continue;
    }
    // Its limit stays until the peer knows: the headers of what we send go on with it.
    close_inflow(*link, id);
    link->say.refused |= 1ull << id;
    want(*link);
  }
}

/// A peer that has died is known at once, not by its silence.
/// @param take what has come is to be taken before a session ends: not from within that.
void Port::look_at_events(bool take) {
  pmd::CardEvent events[kBurst];
  for (uint32_t n = kBurst; n == kBurst;) {
    n = events_->burst(events, kBurst);
    for (uint32_t i = 0; i < n; ++i) {
      if (events[i].type == regs::EventType::kOverflow) {
        gone_.clear();  // some may have come back
      }
      if (events[i].type != regs::EventType::kPartner) {
        continue;
      }
      if (events[i].info != 0) {
        gone_.erase(events[i].source);
        continue;
      }
      gone_.insert(events[i].source);
      const auto known = index_of_.find(events[i].source);
      if (known == index_of_.end()) {
        continue;
      }
      Link& link = *links_[known->second];
      if (take) {
        take_what_came();
      }
      if (link.state == LinkState::kUp || link.keys.remote != 0) {
        forget_peer(link);
      }
      if (link.rest.on) {
        end_rest(link);
      }
    }
  }
}

}  // namespace rio::msg
