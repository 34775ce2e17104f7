#include "fpga/wire/udp/contact.hpp"

#include <algorithm>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kCallNs = 20'000'000;  // before the second call; then the interval doubles
constexpr uint64_t kCallMaxNs = 500'000'000;
constexpr uint64_t kAskNs = 20'000'000;  // before the second question; then the interval doubles
constexpr uint64_t kAskMaxNs = 1'000'000'000;

}  // namespace

Greeting Attempt::say(uint8_t kind, const Self& self, uint32_t seen_bytes) const {
  Greeting out;
  out.kind = kind;
  out.member = self.member;
  out.first_id = self.first_id;
  out.ids = self.ids;
  out.fabric = self.fabric;
  out.challenge = challenge;
  out.session = session;
  out.datagram_bytes = seen_bytes;
  if (they.has_value()) {
    out.to_session = they->session;
    out.echo = they->challenge;
  }
  return out;
}

void Attempt::hear(const Greeting& greeting, uint32_t through_bytes) {
  they = greeting;
  datagram_bytes = std::clamp(through_bytes, kDatagramMin, kDatagramMax);
}

Agreed Attempt::agree(const Key& key) const {
  Agreed out;
  out.session = session;
  out.their_session = they->session;
  out.datagram_bytes = datagram_bytes;
  out.sealed = key.set();
  if (key.set()) {
    out.out_key = key.derive(challenge, they->challenge);
    out.in_key = key.derive(they->challenge, challenge);
  }
  return out;
}

void Calls::begin(uint64_t now_ns) {
  begun_ns_ = next_ns_ = now_ns;
  tries_ = 1;
}

uint32_t Calls::call(uint64_t now_ns, uint32_t path_bytes) {
  const bool is_short = tries_ >= 3 && tries_ % 2 == 1;
  next_ns_ = now_ns + std::min(kCallNs << std::min(tries_ - 1, 8u), kCallMaxNs);
  ++tries_;
  return is_short ? kDatagramMin : path_bytes;
}

void Doubt::begin(uint64_t now_ns, uint64_t due_ns) {
  if (!on()) {
    asked_ = 0;
    since_ns_ = now_ns;
    due_ns_ = due_ns;
  }
}

int Doubt::ask(uint64_t now_ns, const Attempt& now, const Self& self, Greeting* out) {
  if (asked_ == 0) {
    if (const int rc = draw(challenge_); rc != 0) {
      return rc;
    }
  }
  due_ns_ = now_ns + std::min(kAskNs << std::min(asked_, 8u), kAskMaxNs);
  ++asked_;
  *out = now.say(kKindAsk, self, 0);
  out->challenge = challenge_;
  return 0;
}

bool Doubt::answered_by(const Greeting& farewell, const Attempt& now) const {
  return on() && asked_ > 0 && farewell.reason == Reason::kUnknown &&
         farewell.to_session == now.session && farewell.echo == challenge_;
}

bool knows(const Attempt& attempt, const Greeting& question) {
  return attempt.they.has_value() && attempt.session == question.to_session &&
         attempt.challenge == question.echo && attempt.they->session == question.session;
}

}  // namespace rio::wire::udp
