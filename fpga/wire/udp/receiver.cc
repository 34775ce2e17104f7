#include "fpga/wire/udp/receiver.hpp"

#include <bit>
#include <cassert>

namespace rio::wire::udp {

Receiver::Receiver(uint32_t window, uint32_t first)
    : mask_(window - 1), taken_(first), next_(first), places_(window) {
  assert(std::has_single_bit(window) && window <= kWindowMax);
}

Arrival Receiver::put(uint32_t unit, std::span<const uint8_t> bytes) {
  const uint32_t ahead = unit - taken_;  // wraps if the unit was delivered already
  if (ahead > mask_) {
    return static_cast<int32_t>(ahead) < 0 ? Arrival::kAgain : Arrival::kOutside;
  }
  Place& to = places_[unit & mask_];
  if (to.full) {
    return Arrival::kAgain;
  }
  to.bytes.assign(bytes.begin(), bytes.end());
  to.full = true;
  find_next();
  return Arrival::kNew;
}

void Receiver::find_next() {
  while (next_ - taken_ <= mask_ && place(next_).full) {
    ++next_;
  }
}

void Receiver::skip() {
  assert(taken_ == next_);
  ++taken_;
  ++next_;
  find_next();
}

std::span<const uint8_t> Receiver::front() const {
  return taken_ == next_ ? std::span<const uint8_t>{} : place(taken_).bytes;
}

void Receiver::pop() {
  assert(taken_ != next_);
  places_[taken_ & mask_].full = false;
  ++taken_;
}

Heard Receiver::heard() const {
  const uint32_t window = mask_ + 1 - (next_ - taken_);
  Heard out{next_, window, 0};
  for (uint32_t i = 0; i < 64 && i + 1 < window; ++i) {
    out.seen |= uint64_t{place(next_ + 1 + i).full} << i;
  }
  return out;
}

}  // namespace rio::wire::udp
