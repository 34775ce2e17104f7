#include "lib/rail/rail_state.hpp"

#include <algorithm>

namespace rio::rail {

RailState::RailState(uint64_t response_timeout_ns, bool is_known)
    : timeout_ns_(response_timeout_ns),
      next_probe_ns_(is_known ? kNever : 0),
      interval_ns_(response_timeout_ns),
      state_(is_known ? State::kUp : State::kDown) {
  assert(response_timeout_ns >= 1);
}

/// Whether a message that is in doubt now was sent before the last answered probe. The card may be
/// a quarter of the time-out late.
bool RailState::is_old(uint64_t now_ns) const {
  return proof_ns_ != 0 && now_ns < proof_ns_ + timeout_ns_ + timeout_ns_ / 4;
}

bool RailState::came_back_lately(uint64_t now_ns) const {
  return hold_ns_ != 0 && now_ns - up_ns_ < kCalmHolds * hold_ns_;
}

uint64_t RailState::longest_interval_ns() const {
  return std::max(kProbeMostNs, timeout_ns_);
}

/// How long the card does not use a letter of a message in doubt: two response time-outs, of which
/// the receiver's and its own clock may each be a quarter late.
uint64_t RailState::letter_rest_ns() const {
  return 2 * timeout_ns_ * 25 / 16;
}

uint64_t RailState::hold_interval_ns() const {
  return std::min(hold_ns_ / (2 * kAnswersLeast), kHoldProbeMostNs);
}

/// The hold of a path that has left kUp: doubled if it had just come back, else halved for each
/// calm time.
uint64_t RailState::next_hold_ns() const {
  uint64_t up_for_ns = left_ns_ - up_ns_;
  if (came_back_lately(left_ns_)) {
    return std::min(2 * hold_ns_, kHoldMostNs);
  }
  uint64_t hold_ns = hold_ns_;
  while (hold_ns > kHoldLeastNs && up_for_ns >= kCalmHolds * hold_ns) {
    up_for_ns -= kCalmHolds * hold_ns;
    hold_ns /= 2;
  }
  return std::max(hold_ns, kHoldLeastNs);
}

void RailState::probe_by(uint64_t by_ns) {
  if (!is_gone_) {
    next_probe_ns_ = std::min(next_probe_ns_, by_ns);
  }
}

void RailState::back_off(uint64_t now_ns) {
  next_probe_ns_ = now_ns + (is_link_down_ ? longest_interval_ns() : interval_ns_);
  interval_ns_ = std::min(2 * interval_ns_, longest_interval_ns());
}

void RailState::leave_up(uint64_t now_ns) {
  left_ns_ = now_ns;
  ++counts_.moves;
}

void RailState::go_down(uint64_t now_ns) {
  if (state_ == State::kUp) {
    leave_up(now_ns);
  }
  if (state_ != State::kProbing) {
    ++counts_.downs;
    hold_ns_ = next_hold_ns();
    interval_ns_ = timeout_ns_;
  }
  state_ = State::kDown;
  since_ns_ = now_ns;
  back_off(now_ns);
}

void RailState::come_up(uint64_t now_ns) {
  state_ = State::kUp;
  since_ns_ = now_ns;
  up_ns_ = now_ns;
  next_probe_ns_ = kNever;
  counts_.returns += hold_ns_ != 0 ? 1 : 0;  // 0: the first time
}

void RailState::in_doubt(uint64_t now_ns) {
  doubt_ns_ = now_ns;
  if (state_ == State::kDown || is_old(now_ns)) {
    return;
  }
  if (state_ == State::kUp && !came_back_lately(now_ns)) {
    leave_up(now_ns);
    state_ = State::kSuspect;
    since_ns_ = now_ns;
    next_probe_ns_ = now_ns;
  } else if (state_ != State::kSuspect || now_ns >= since_ns_ + timeout_ns_) {
    go_down(now_ns);  // in kSuspect, an earlier doubt is of a message sent before the first one
  }
}

void RailState::refused(uint64_t now_ns) {
  if (state_ != State::kDown) {
    go_down(now_ns);
  }
}

void RailState::link_down(uint64_t now_ns) {
  if (is_link_down_ || is_gone_) {
    return;
  }
  is_link_down_ = true;
  if (state_ == State::kDown) {
    back_off(now_ns);
  } else {
    go_down(now_ns);
  }
}

void RailState::link_up(uint64_t now_ns) {
  if (is_link_down_) {
    is_link_down_ = false;
    probe_by(now_ns);
  }
}

void RailState::card_gone(uint64_t now_ns) {
  if (is_gone_) {
    return;
  }
  if (state_ != State::kDown) {
    go_down(now_ns);
  }
  is_gone_ = true;
  is_probe_out_ = false;
  next_probe_ns_ = kNever;
}

void RailState::card_back(uint64_t now_ns) {
  if (is_gone_) {
    is_gone_ = false;
    is_link_down_ = false;
    interval_ns_ = timeout_ns_;
    probe_by(now_ns);
  }
}

void RailState::probe_sent(uint64_t now_ns) {
  assert(!is_probe_out_ && !is_gone_);
  is_probe_out_ = true;
  probe_ns_ = now_ns;
}

void RailState::probe_answered(uint64_t now_ns) {
  if (!is_probe_out_) {
    return;
  }
  is_probe_out_ = false;
  if (probe_ns_ < since_ns_) {
    return;  // it says nothing about the time since the path went down
  }
  proof_ns_ = probe_ns_;
  is_link_down_ = false;  // the report of its return was lost
  answers_ = state_ == State::kProbing ? answers_ + 1 : 1;
  if (state_ == State::kSuspect && now_ns < doubt_ns_ + letter_rest_ns()) {
    next_probe_ns_ = doubt_ns_ + letter_rest_ns();
  } else if (state_ == State::kSuspect) {
    hold_ns_ = std::max(hold_ns_, kHoldLeastNs);
    come_up(now_ns);
  } else if (state_ == State::kDown && hold_ns_ != 0) {
    state_ = State::kProbing;
    since_ns_ = now_ns;
    next_probe_ns_ = now_ns + hold_interval_ns();
  } else if (state_ == State::kDown ||
             (now_ns >= since_ns_ + hold_ns_ && answers_ >= kAnswersLeast)) {
    come_up(now_ns);
  } else {
    next_probe_ns_ = now_ns + hold_interval_ns();
  }
}

void RailState::probe_unanswered(uint64_t now_ns) {
  if (!is_probe_out_) {
    return;
  }
  is_probe_out_ = false;
  if (probe_ns_ < since_ns_) {
    return;
  }
  if (state_ == State::kDown) {
    back_off(now_ns);
  } else {
    go_down(now_ns);
  }
}

void RailState::want(uint64_t now_ns) {
  if (state_ == State::kDown) {
    probe_by(std::max(now_ns, probe_ns_ + timeout_ns_));
  }
}

}  // namespace rio::rail
