#include "lib/msg/grant.hpp"

#include <cerrno>

namespace rio::msg {

void SendGrant::begin(uint8_t mailbox, uint32_t messages, uint32_t total) {
  mailbox_ = mailbox;
  messages_ = messages;
  total_ = total;
  posted_ = 0;
  completed_ = 0;
  arrived_ = 0;
  rest_ns_ = 0;
  is_doubtful_ = false;
  is_shown_ = false;
  state_ = State::kSending;
}

int SendGrant::on_grant(uint8_t attempt, uint8_t mailbox, uint32_t messages, uint32_t total) {
  if (attempt > attempt_ || messages == 0 || total == 0 || total > messages) {
    return -EPROTO;
  }
  if (attempt < attempt_ || state_ == State::kEnded) {
    return 0;  // we have closed that attempt
  }
  if (state_ != State::kRequested) {
    return -EPROTO;  // a second GRANT
  }
  heard_ = true;
  begin(mailbox, messages, total);
  return 0;
}

void SendGrant::accept(uint8_t mailbox, uint32_t messages, uint32_t total) {
  assert(state_ == State::kRequested && attempt_ == 0 && total >= 1 && total <= messages);
  heard_ = false;
  begin(mailbox, messages, total);
}

int SendGrant::on_extend(uint8_t attempt, uint32_t total) {
  if (attempt > attempt_) {
    return -EPROTO;
  }
  if (attempt < attempt_ || state_ == State::kDraining || state_ == State::kEnded) {
    return 0;
  }
  // The first EXTEND after accept() may repeat the total: it confirms the offer.
  const bool grows = heard_ ? total > total_ : total >= total_;
  if (state_ != State::kSending || !grows || total > messages_) {
    return -EPROTO;
  }
  heard_ = true;
  total_ = total;
  check_done();
  return 0;
}

int SendGrant::on_done(uint8_t attempt) {
  if (state_ == State::kEnded) {
    return 0;
  }
  // DONE for what is not shown answers CLOSED with `again`, and names the attempt after that one.
  if (state_ != State::kRequested || attempt != attempt_ || (attempt_ == 0 && !is_shown_)) {
    return -EPROTO;
  }
  is_shown_ = false;
  state_ = State::kDone;
  return 0;
}

int SendGrant::on_abort(uint8_t attempt, StopCause cause) {
  const bool is_under_way = state_ != State::kRequested && state_ != State::kDone;
  if (attempt > attempt_ || (attempt == attempt_ && cause.again && !is_under_way)) {
    return -EPROTO;  // only what was granted can be parked, and not after its end
  }
  if (attempt < attempt_) {
    // We have closed that attempt. If the receiver has given up, this ends our new request.
    if (attempt + 1 == attempt_ && state_ == State::kRequested && !cause.again) {
      cause_ = cause;
      state_ = State::kEnded;
    }
    return 0;
  }
  is_shown_ = false;  // a receiver that gives up has stopped reading
  owes_closed_ = owes_closed_ || state_ == State::kDone;  // in kEnded, CLOSED was sent already
  stop(cause);
  return 0;
}

void SendGrant::stop(StopCause cause) {
  if (state_ == State::kRequested) {
    cause_ = cause;
    state_ = State::kEnded;
    owes_closed_ = true;
  } else if (state_ == State::kSending) {
    cause_ = cause;
    cause_.again = cause.again && may_ask_again();
    state_ = State::kDraining;
  } else if (state_ == State::kDraining && !cause.again) {
    cause_ = cause;
  }
}

void SendGrant::completed(uint32_t n) {
  assert(n <= out());
  completed_ += n;
  arrived_ += state_ == State::kSending ? n : 0;
  check_done();
}

void SendGrant::check_done() {
  if (state_ == State::kSending && heard_ && completed_ == messages_) {
    state_ = State::kDone;
  }
}

SendGrant::Closed SendGrant::take_closed() {
  const Closed closed{attempt_, arrived_, cause_, is_doubtful_ && cause_.again && !owes_closed_};
  if (owes_closed_) {
    owes_closed_ = false;
    return closed;
  }
  assert(state_ == State::kDraining && out() == 0);
  if (cause_.again) {
    ++attempt_;
    ++fruitless_;
    posted_ = 0;
    completed_ = 0;
    arrived_ = 0;
    heard_ = true;
    state_ = State::kRequested;
  } else {
    state_ = State::kEnded;
  }
  return closed;
}

void RecvGrant::start(uint32_t messages, uint32_t window) {
  assert(state_ == State::kWaiting && messages >= 1 && window >= 1);
  messages_ = messages;
  window_ = window;
  posted_ = 0;
  completed_ = 0;
  told_ = 0;
  state_ = State::kReceiving;
}

void RecvGrant::completed(uint32_t n) {
  assert(n <= posted_ - completed_);
  completed_ += n;
  if (state_ == State::kReceiving && completed_ == messages_) {
    state_ = State::kDone;
  }
}

bool RecvGrant::stop(StopCause cause) {
  const bool parked = state_ == State::kParked && !cause.again;
  if (state_ != State::kWaiting && state_ != State::kReceiving && !parked) {
    return false;
  }
  cause_ = cause;
  state_ = cause.again ? State::kParked : State::kStopping;
  return true;
}

int RecvGrant::on_closed(uint8_t attempt, uint32_t arrived, StopCause cause) {
  if (state_ == State::kDone || state_ == State::kEnded) {
    // The sender may have asked again and then given up, before it received DONE.
    return attempt <= attempt_ + 1 ? 0 : -EPROTO;
  }
  if (attempt > attempt_) {
    return -EPROTO;
  }
  if (attempt < attempt_) {
    return 0;
  }
  if (arrived > told_ || (state_ == State::kWaiting && cause.again)) {
    return -EPROTO;  // the sender claims more than was granted
  }
  const bool ends = state_ == State::kStopping || !cause.again;
  if (state_ != State::kStopping) {
    cause_ = cause;
  }
  if (!ends && attempt_ + 1 >= kAttemptsMax) {
    return -EPROTO;  // an honest sender would have given up
  }
  if (ends) {
    state_ = State::kEnded;
    return 0;
  }
  ++attempt_;
  kept_ = arrived < completed_ ? arrived : completed_;
  told_ = 0;
  state_ = State::kWaiting;
  return 0;
}

}  // namespace rio::msg
