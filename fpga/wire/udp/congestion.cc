#include "fpga/wire/udp/congestion.hpp"

#include <algorithm>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kTimeoutMinNs = 10'000'000;
constexpr uint64_t kTimeoutMaxNs = 2'000'000'000;
constexpr uint64_t kTimeoutFirstNs = 200'000'000;
constexpr uint32_t kWindowFirst = 10;  // datagrams, as in RFC 6928
constexpr uint32_t kWindowMin = 2;     // datagrams, after a loss
constexpr uint32_t kDoublingsMax = 8;

}  // namespace

Congestion::Congestion(uint32_t datagram_bytes)
    : datagram_(datagram_bytes), window_(uint64_t{kWindowFirst} * datagram_bytes) {}

void Congestion::on_acked(uint32_t bytes, uint64_t sent_ns) {
  // A sender that does not fill the window learns nothing about a larger one.
  const bool filled = under_way_ + datagram_ > window_ / 2;
  under_way_ -= std::min<uint64_t>(bytes, under_way_);
  doublings_ = 0;
  if (!filled || (reduced_ && sent_ns <= recover_ns_)) {
    return;
  }
  if (window_ < threshold_) {
    window_ += bytes;
    return;
  }
  acked_ += bytes;
  if (acked_ >= window_) {
    acked_ -= window_;
    window_ += datagram_;
  }
}

void Congestion::on_lost(uint32_t bytes, uint64_t sent_ns, uint64_t now_ns) {
  under_way_ -= std::min<uint64_t>(bytes, under_way_);
  if (reduced_ && sent_ns <= recover_ns_) {
    return;
  }
  reduced_ = true;
  recover_ns_ = now_ns;
  window_ = std::max(window_ / 2, uint64_t{kWindowMin} * datagram_);
  threshold_ = window_;
  acked_ = 0;
}

void Congestion::on_timeout(uint64_t now_ns) {
  if (doublings_ == 0) {  // after consecutive time-outs the window says nothing
    threshold_ = std::max(window_ / 2, uint64_t{kWindowMin} * datagram_);
  }
  window_ = datagram_;
  acked_ = 0;
  reduced_ = true;
  recover_ns_ = now_ns;
  doublings_ = std::min(doublings_ + 1, kDoublingsMax);
}

void Congestion::on_round_trip(uint64_t ns) {
  if (smooth_ns_ == 0) {
    smooth_ns_ = std::max<uint64_t>(ns, 1);
    deviation_ns_ = ns / 2;
    return;
  }
  const uint64_t off = ns > smooth_ns_ ? ns - smooth_ns_ : smooth_ns_ - ns;
  deviation_ns_ = (3 * deviation_ns_ + off) / 4;
  smooth_ns_ = std::max<uint64_t>((7 * smooth_ns_ + ns) / 8, 1);
}

uint64_t Congestion::timeout_ns() const {
  const uint64_t once = smooth_ns_ == 0 ? kTimeoutFirstNs : smooth_ns_ + 4 * deviation_ns_;
  return std::min(std::max(once, kTimeoutMinNs) << doublings_, kTimeoutMaxNs);
}

}  // namespace rio::wire::udp
