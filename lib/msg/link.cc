#include "lib/msg/link.hpp"

#include <new>

namespace rio::msg {

bool Link::keep(uint32_t number, const Early& early) {
  if (number - next_in() >= kWindow) {
    return false;
  }
  if (early_ == nullptr) {
    early_.reset(new (std::nothrow) std::array<Early, kWindow>{});
    if (early_ == nullptr) {
      return false;
    }
  }
  Early& place = (*early_)[number % kWindow];
  if (place.buffer != nullptr) {
    return false;
  }
  place = early;
  ++early_count_;
  return true;
}

bool Link::take(Early* early) {
  if (early_count_ == 0) {
    return false;
  }
  Early& place = (*early_)[next_in() % kWindow];
  if (place.buffer == nullptr) {
    return false;
  }
  *early = place;
  place.buffer = nullptr;
  --early_count_;
  return true;
}

bool Link::drop(Early* early) {
  for (uint32_t i = 0; early_count_ != 0 && i < kWindow; ++i) {
    Early& place = (*early_)[i];
    if (place.buffer != nullptr) {
      *early = place;
      place.buffer = nullptr;
      --early_count_;
      return true;
    }
  }
  return false;
}

}  // namespace rio::msg
