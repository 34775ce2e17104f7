// Who talks to whom: hello, welcome, and the end of it. What has to be said is noted in the link
// and said when there is room, so nothing here ever waits.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "lib/msg/port.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/sender.hpp"
#include "pmd/bus/log.hpp"

namespace rio::msg {
namespace {

constexpr uint64_t kAgainNs = 2'000'000;  // a question that got no answer is put again
constexpr uint16_t kShareMin = 4;

[[nodiscard]] uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

}  // namespace

void Port::want(Link& link) {
  if (!link.listed) {
    link.listed = true;
    talkers_.push_back(link.index());
  }
}

void Port::speak() {
  // Those that could not say everything stay in the list.
  std::vector<uint32_t> now;
  now.swap(talkers_);
  for (const uint32_t index : now) {
    Link& link = *links_[index];
    link.listed = false;
    if (!speak(link)) {
      want(link);
    }
  }
}

bool Port::speak(Link& link) {
  if (error_ != 0) {
    return true;
  }
  const auto each = [&](uint64_t* bits, auto&& say_it) {
    for (; *bits != 0; *bits &= *bits - 1) {
      if (!say_it(static_cast<uint16_t>(__builtin_ctzll(*bits)))) {
        return false;
      }
    }
    return true;
  };
  if (link.say_reset) {
    link.say_reset = !say_session(link, Kind::kReset, link.unknown_key);
  }
  if (link.say_welcome) {
    link.say_welcome = !say_session(link, Kind::kWelcome, link.local_key);
  }
  if (link.state == LinkState::kIdle && link.say_open != 0) {
    ask(link);
  }
  if (link.say_hello) {
    link.say_hello = !say_session(link, Kind::kHello, link.local_key);
  }
  if (link.state != LinkState::kUp) {
    return !link.say_hello && !link.say_welcome && !link.say_reset;
  }
  return !link.say_reset && !link.say_welcome && each(&link.say_opened, [&](uint16_t c) {
    return say(link, Kind::kOpened, 0, c, link.in[c].limit);
  }) && each(&link.say_refused, [&](uint16_t c) {
    return say(link, Kind::kRefused, 0, c, 0);
  }) && each(&link.say_credit, [&](uint16_t c) {
    return link.in[c].told == link.in[c].limit || say(link, Kind::kCredit, 0, c, link.in[c].limit);
  }) && each(&link.say_open, [&](uint16_t c) {
    link.asked |= 1ull << c;
    return say(link, Kind::kOpen, c, 0, 0);
  });
}

void Port::ask(Link& link) {
  link.state = LinkState::kHello;
  link.say_hello = true;
  const uint64_t now = now_ns();
  link.again_ns = now + kAgainNs;
  link.deadline_ns = now + uint64_t{config_.connect_ms} * 1'000'000;
  asking_.push_back(link.index());
}

void Port::on_unknown(uint32_t source, uint32_t key) {
  Link* const link = this->link(source);
  if (link == nullptr || link->say_reset) {
    return;
  }
  link->say_reset = true;
  link->unknown_key = key;
  want(*link);
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
  if (body.magic != kMagic || body.unused != 0) {
    ++stats_.bad;
    return;
  }
  if (header.kind == Kind::kHello) {
    on_hello(source, body);
    return;
  }
  const auto known = index_of_.find(source);
  Link* const link = known == index_of_.end() ? nullptr : links_[known->second].get();
  if (link == nullptr) {
    ++stats_.bad;
    return;
  }
  if (header.kind == Kind::kReset && link->remote_key == body.session &&
      link->state != LinkState::kIdle) {
    end_session(*link, -ECONNRESET);
  } else if (header.kind == Kind::kWelcome && body.peer == link->local_key && body.session != 0 &&
             link->state == LinkState::kHello) {
    link->remote_key = body.session;
    link->next_out = HeaderWords::key_and_number(body.session, 0);
    link->state = LinkState::kUp;
    link->deadline_ns = 0;
    want(*link);
  } else if (link->remote_key != body.session) {
    ++stats_.bad;  // an answer to another question
  }
}

void Port::on_hello(uint32_t source, const SessionBody& body) {
  Link* const link = this->link(source);
  if (link == nullptr || body.session == 0) {
    ++stats_.bad;
    return;
  }
  if (link->state == LinkState::kUp && link->remote_key != body.session) {
    end_session(*link, -ECONNRESET);  // the peer was born again
  }
  if (link->remote_key != body.session) {
    link->next_out = HeaderWords::key_and_number(body.session, 0);
  }
  link->remote_key = body.session;
  link->state = LinkState::kUp;
  link->deadline_ns = 0;
  link->say_hello = false;
  link->say_welcome = true;
  want(*link);
}

void Port::cut_off(Link& link) {
  ++stats_.cut_off;
  pmd::log_warning(
      "destID %u broke the rules of its session, which is over; it runs another "
      "release, or means harm",
      link.dest_id());
  on_unknown(link.dest_id(), link.local_key);
  end_session(link, -EPROTO);
}

void Port::end_session(Link& link, int error) {
  Early early{};
  while (link.drop(&early)) {
    repost(early.buffer);
  }
  for (Inflow& flow : link.in) {
    // What was taken and not given back comes back one by one.
    const auto held = static_cast<uint16_t>(flow.received - (flow.limit - flow.share));
    unshared_ += flow.share != 0 ? flow.share - held : 0u;
    flow = {};
  }
  link.out.fill({});
  if (receiver_ != nullptr) {
    sender_->end_session(link, error);
    receiver_->end_session(link, error);
  }
  // Who was about to send hears of it; who never did has nothing to hear.
  link.error = link.asked != 0 || link.say_open != 0 ? error : 0;
  link.ended = error;
  ++sessions_ended_;
  link.state = LinkState::kIdle;
  link.say_open = link.asked = link.refused = link.say_opened = link.say_refused = 0;
  link.say_credit = 0;
  link.say_hello = link.say_welcome = false;
  link.deadline_ns = 0;
  link.remote_key = 0;
  link.next_out = 0;
  ++link.session;
  link.local_key = new_key(link);
  link.expect(0);
}

void Port::open_inflow(Link& link, uint32_t context) {
  Inflow& flow = link.in[context];
  if (contexts_[context] == nullptr) {
    link.say_refused |= 1ull << context;
    want(link);
    return;
  }
  if (flow.share == 0) {
    // The more is taken, the less a newcomer gets.
    const uint32_t most = std::min(config_.share, unshared_ / 2);
    if (most < kShareMin) {
      link.say_refused |= 1ull << context;
      want(link);
      return;
    }
    const auto share = static_cast<uint16_t>(most);
    flow = {0, share, 0, static_cast<uint16_t>(share / 2), share};
    unshared_ -= most;
  }
  link.say_opened |= 1ull << context;
  want(link);
}

void Port::close_context(uint16_t id) {
  for (const std::unique_ptr<Link>& link : links_) {
    Inflow& flow = link->in[id];
    if (flow.share == 0) {
      continue;
    }
    const auto held = static_cast<uint16_t>(flow.received - (flow.limit - flow.share));
    unshared_ += flow.share - held;
    flow = {};
    link->say_refused |= 1ull << id;
    want(*link);
  }
}

/// A peer that has died is known at once, not by its silence.
void Port::look_at_events() {
  pmd::CardEvent events[kBurst];
  const uint32_t n = events_->burst(events, kBurst);
  for (uint32_t i = 0; i < n; ++i) {
    if (events[i].type != regs::EventType::kPartner || events[i].info != 0) {
      continue;
    }
    const auto known = index_of_.find(events[i].source);
    if (known != index_of_.end()) {
      end_session(*links_[known->second], -ECONNRESET);
    }
  }
}

void Port::look_at_time() {
  if (asking_.empty() && again_.empty()) {
    return;
  }
  const uint64_t now = now_ns();
  for (size_t i = 0; i < asking_.size();) {
    Link& link = *links_[asking_[i]];
    if (link.deadline_ns == 0) {
      asking_[i] = asking_.back();
      asking_.pop_back();
      continue;
    }
    if (now > link.deadline_ns) {
      end_session(link, -EHOSTUNREACH);
    } else if (now > link.again_ns) {
      link.again_ns = now + kAgainNs;
      link.say_hello = true;
      want(link);
    }
    ++i;
  }
  if (!again_.empty()) {
    send_again();
  }
}

int Port::flush(uint32_t timeout_ms) {
  const uint64_t end = now_ns() + uint64_t{timeout_ms} * 1'000'000;
  while (tx_->outstanding() != 0 || !again_.empty() || !talkers_.empty()) {
    if (error_ != 0 || now_ns() > end) {
      return -ETIMEDOUT;
    }
    reap();
    progress();
  }
  return 0;
}

}  // namespace rio::msg
