#include "fpga/wire/udp/sender.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kLateOrder = 3;  // RFC 9002 6.1.1: lost once so many later ones have arrived

}  // namespace

Sender::Sender(uint32_t window, uint32_t first, Congestion* congestion)
    : mask_(window - 1),
      congestion_(congestion),
      begin_(first),
      next_(first),
      end_(first),
      allowed_(first + window),
      places_(window) {
  assert(std::has_single_bit(window) && window <= kWindowMax);
}

std::span<uint8_t> Sender::begin(size_t bytes) {
  if (kept() > mask_) {
    return {};
  }
  std::vector<uint8_t>& memory = place(end_).memory;
  if (memory.size() < bytes) {
    memory.resize(bytes);
  }
  return memory;
}

void Sender::end(size_t bytes) {
  Place& to = place(end_);
  assert(bytes > 0 && bytes <= to.memory.size());
  to.length = static_cast<uint32_t>(bytes);
  to.state = State::kWaiting;
  to.once = true;
  ++end_;
}

/// Finds the unit to send next, if more may be under way. @return false: none.
bool Sender::find_next(uint32_t* unit) const {
  if (lost_ > 0) {
    *unit = begin_;
    while (place(*unit).state != State::kLost) {
      ++*unit;
    }
    return true;
  }
  // A peer without room gets one unit at a time as a question: its report of new room may have been
  // lost.
  const bool room = static_cast<int32_t>(allowed_ - next_) > 0;
  *unit = next_;
  return next_ != end_ && (room || next_ == begin_);
}

uint32_t Sender::next_bytes() const {
  uint32_t unit = 0;
  return find_next(&unit) && congestion_->may_send(place(unit).length) ? place(unit).length : 0;
}

Part Sender::send(uint64_t now_ns) {
  uint32_t unit = 0;
  if (!find_next(&unit) || !congestion_->may_send(place(unit).length)) {
    return {};
  }
  Place& at = place(unit);
  congestion_->on_sent(at.length);
  if (at.state == State::kLost) {
    --lost_;
    at.once = false;
  } else {
    ++next_;
  }
  if (flying_++ == 0) {
    waits_ns_ = now_ns;
  }
  at.state = State::kUnderWay;
  at.order = ++order_;
  at.sent_ns = now_ns;
  return {unit, std::span<const uint8_t>(at.memory).first(at.length)};
}

void Sender::arrived(uint32_t unit, uint64_t now_ns) {
  Place& at = place(unit);
  if (at.state == State::kThere) {
    return;
  }
  if (at.state == State::kUnderWay) {
    --flying_;
    congestion_->on_acked(at.length, at.sent_ns);
  } else {
    --lost_;
  }
  at.state = State::kThere;
  if (at.once) {  // Karn: for a repeated unit it is not known which sending arrived
    arrived_order_ = std::max(arrived_order_, at.order);
    congestion_->on_round_trip(now_ns - at.sent_ns);
  }
  waits_ns_ = now_ns;
}

void Sender::lose(uint64_t order, uint64_t now_ns) {
  for (uint32_t unit = begin_; unit != next_; ++unit) {
    Place& at = place(unit);
    if (at.state == State::kUnderWay && at.order <= order) {
      at.state = State::kLost;
      --flying_;
      ++lost_;
      congestion_->on_lost(at.length, at.sent_ns, now_ns);
    }
  }
}

int Sender::heard(const Heard& heard, uint64_t now_ns) {
  const uint32_t sent = next_ - begin_;
  const uint32_t more = heard.next - begin_;
  if (static_cast<int32_t>(more) < 0) {
    return 0;  // an old report that was overtaken
  }
  const auto beyond = static_cast<uint32_t>(std::bit_width(heard.seen));
  if (more > sent || (beyond > 0 && more + 1 + beyond > sent) || heard.window > kWindowMax) {
    return -EPROTO;
  }
  silent_ = 0;  // the peer lives, even if it has no room
  while (begin_ != heard.next) {
    arrived(begin_, now_ns);
    ++begin_;
  }
  for (uint32_t i = 0; i < beyond; ++i) {
    if ((heard.seen >> i & 1) != 0) {
      arrived(begin_ + 1 + i, now_ns);
    }
  }
  const uint32_t allowed = heard.next + heard.window;
  if (static_cast<int32_t>(allowed - allowed_) > 0) {
    allowed_ = allowed;
  }
  if (beyond > 0 && arrived_order_ > kLateOrder) {  // otherwise nothing so late has arrived
    lose(arrived_order_ - kLateOrder, now_ns);
  }
  return 0;
}

uint64_t Sender::due_ns() const {
  return flying_ == 0 ? UINT64_MAX : waits_ns_ + congestion_->timeout_ns();
}

void Sender::look(uint64_t now_ns) {
  if (now_ns < due_ns()) {
    return;
  }
  congestion_->on_timeout(now_ns);  // before the losses, which then leave the window as it is
  lose(order_, now_ns);
  ++silent_;
}

}  // namespace rio::wire::udp
