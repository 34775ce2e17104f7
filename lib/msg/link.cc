#include "lib/msg/link.hpp"

namespace rio::msg {

bool Link::keep(const Numbered& early) {
  const uint32_t number = early.header.number();
  const bool bare = early.buffer == nullptr;
  if (number - next_in() >= kWindow || (bare && bare_count_ == kBareMax)) {
    return false;
  }
  early_.emplace(number, early);
  bare_count_ += bare ? 1 : 0;
  return true;
}

bool Link::take(Numbered* early) {
  const auto place = early_.find(next_in());
  if (place == early_.end()) {
    return false;
  }
  *early = place->second;
  bare_count_ -= early->buffer == nullptr ? 1 : 0;
  early_.erase(place);
  return true;
}

bool Link::drop(Numbered* early) {
  if (early_.empty()) {
    bare_count_ = 0;
    return false;
  }
  *early = early_.begin()->second;
  early_.erase(early_.begin());
  return true;
}

}  // namespace rio::msg
