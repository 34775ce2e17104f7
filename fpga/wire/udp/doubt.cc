#include "fpga/wire/udp/doubt.hpp"

#include <algorithm>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kAskNs = 20'000'000;  // before the second question; then the interval doubles
constexpr uint64_t kAskMaxNs = 1'000'000'000;

}  // namespace

void Doubt::begin(uint64_t now_ns, uint64_t due_ns) {
  if (!on_) {
    on_ = true;
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
  return on_ && asked_ > 0 && farewell.reason == Reason::kUnknown &&
         farewell.to_session == now.session && farewell.echo == challenge_;
}

bool knows(const Attempt& attempt, const Greeting& question) {
  return attempt.they.has_value() && attempt.session == question.to_session &&
         attempt.challenge == question.echo && attempt.they->session == question.session;
}

}  // namespace rio::wire::udp
