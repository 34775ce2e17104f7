#include "lib/msg/speaker.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

/// Send a message for each context in *bits, and clear its bit. @return false: some bits are left.
template <class Say>
[[nodiscard]] bool say_each(uint64_t* bits, Say&& say) {
  for (; *bits != 0; *bits &= *bits - 1) {
    if (!say(static_cast<uint16_t>(__builtin_ctzll(*bits)))) {
      return false;
    }
  }
  return true;
}

}  // namespace

void Speaker::speak() {
  // List links again that could not send everything.
  for (const uint32_t index : on_.peers.take_talkers()) {
    if (index == Peers::kStrangers) {
      if (!say_resets()) {
        on_.peers.want_strangers();
      }
      continue;
    }
    Link& link = on_.peers.at(index);
    link.say.listed = false;
    if (!speak(link)) {
      on_.peers.want(link);
    }
  }
}

bool Speaker::speak(Link& link) {
  Outbox& outbox = *link.outbox;
  if (link.path->rail.health.error() != 0) {
    return true;
  }
  if (link.state == LinkState::kIdle && link.say.open != 0) {
    ask(link);  // its time limit also holds for a resting peer
  }
  if (link.path->rest.on) {
    return true;  // the end of the rest lists the link again
  }
  ToSay& say = link.say;
  if (say.welcome) {
    say.welcome = !say_session(link, Kind::kWelcome);
  }
  if (say.hello) {
    say.hello = !say_session(link, Kind::kHello);
  }
  if (link.state != LinkState::kUp) {
    return !say.hello && !say.welcome;
  }
  if (say.alive) {
    say.alive = !outbox.say(link, Kind::kAlive, 0, 0, 0);
  }
  if (say.control) {
    say.control = !say_total(link, Kind::kControl, 0, link.large.control_in);
  }
  return !say.welcome && !say.alive && !say.control && say_contexts(link);
}

bool Speaker::say_contexts(Link& link) {
  ToSay& say = link.say;
  return say_each(&say.opened,
                  [&](uint16_t c) {
                    return link.outbox->say(link, Kind::kOpened, 0, c, link.in[c].tell());
                  }) &&
         say_each(&say.refused, [&](uint16_t c) { return say_refused(link, c); }) &&
         say_each(&say.credit,
                  [&](uint16_t c) { return say_total(link, Kind::kCredit, c, link.in[c]); }) &&
         say_each(&say.records,
                  [&](uint16_t c) {
                    return say_total(link, Kind::kRecords, c, link.large.records_in[c]);
                  }) &&
         say_each(&say.open, [&](uint16_t c) {
           if (!link.outbox->say(link, Kind::kOpen, c, 0, 0)) {
             return false;
           }
           link.theirs.asked |= 1ull << c;
           return true;
         });
}

bool Speaker::say_refused(Link& link, uint32_t context) {
  if (!link.outbox->say(link, Kind::kRefused, 0, context, link.in[context].half)) {
    return false;
  }
  told_at_[link.path->rail.index][context] = link.outbox->ring().next_index();
  // The peer counts from zero again now.
  if (!link.in[context].open) {
    link.in[context] = {};
    link.large.records_in[context] = {};
  }
  return true;
}

/// Announce a limit, unless another message has carried it meanwhile.
bool Speaker::say_total(Link& link, Kind kind, uint32_t from, RecvAccount& account) {
  if (account.changed() && !link.outbox->say(link, kind, 0, from, account.limit())) {
    return false;
  }
  static_cast<void>(account.tell());
  return true;
}

bool Speaker::say_session(const Link& link, Kind kind) {
  const uint32_t rails = on_.rails.count() > 1 ? on_.rails.count() : 0;
  const SessionBody body = {
      kMagic, link.keys.local, link.keys.remote, link.keys.first_in, instance_, rails};
  return link.outbox->say_to(link.path->dest_id,
                             {link.keys.remote, HeaderWords::rest_of(0, 0, 0, kind, 0)}, &body,
                             sizeof(body));
}

void Speaker::ask(Link& link) {
  link.state = LinkState::kHello;
  link.say.hello = true;
  link.clock.hello_ns = on_.listening.now_ns();
  on_.peers.watch(link, base::now_ns() + kAgainNs);
}

void Speaker::tell_unknown(const Reset& reset) {
  const auto pending = std::find_if(resets_.begin(), resets_.end(), [&](const Reset& other) {
    return other.rail == reset.rail && other.dest_id == reset.dest_id && other.key == reset.key;
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
    on_.peers.want_strangers();
  }
  resets_.push_back(reset);
}

bool Speaker::say_resets() {
  while (!resets_.empty()) {
    Rail& rail = *resets_.back().rail;
    if (rail.health.error() == 0 && !rail.outbox.take_room()) {
      return false;
    }
    const Reset reset = resets_.back();
    resets_.pop_back();
    const Path* const path = on_.peers.find(rail.index, reset.dest_id);
    if (rail.health.error() != 0 || (path != nullptr && path->rest.on)) {
      continue;  // the next message to a resting peer causes another reset
    }
    // Session messages have no number; a reset uses the field to count its tries.
    const HeaderWords header = {HeaderWords::key_and_number(0, reset.tries),
                                HeaderWords::rest_of(0, 0, 0, Kind::kReset, 0)};
    const SessionBody body = {kMagic, reset.key, 0, reset.number, instance_, 0};
    static_cast<void>(rail.outbox.say_to(reset.dest_id, header, &body, sizeof(body)));
  }
  return true;
}

bool Speaker::news_may_be_out(uint32_t context) const {
  bool is_told = false;
  for (const Rail* const rail : on_.rails) {
    const uint32_t at = told_at_[rail->index][context];
    const pmd::TxQueue& ring = rail->outbox.ring();
    is_told = is_told || at != 0;
    if (at != 0 && (ring.next_index() - at < ring.next_index() - ring.oldest_index() ||
                    ring.is_straggler(at - 1))) {
      return true;
    }
  }
  if (!is_told) {
    return false;
  }
  for (uint32_t i = 0; i < on_.peers.count(); ++i) {
    const Backlog& backlog = on_.peers.at(i).backlog;
    if (backlog.again + backlog.resent != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace rio::msg
