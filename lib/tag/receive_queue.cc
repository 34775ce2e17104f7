#include "lib/tag/receive_queue.hpp"

#include <bit>
#include <cassert>

namespace rio::tag {

int ReceiveQueue::create(const HashSeed& seed, uint64_t receives, uint64_t first_number) {
  posted_ = gone_ = wild_posted_ = first_number;
  return table_.create(seed, receives);
}

void ReceiveQueue::add(Receive& receive) {
  assert(receive.place == Place::kNowhere);
  if (receive.ignore != usual() && count() == listed_ &&
      std::popcount(receive.ignore) <= kUsualMax) {
    table_.ignore(receive.ignore);
  }
  if (receive.ignore == usual()) {
    const bool any_source = receive.source == kAnySource;
    wild_ += any_source;
    wild_posted_ += any_source;
    add_whole(receive);
    return;
  }
  receive.age = ++wild_posted_;
  ++posted_;
  ++wild_;
  ++listed_;
  receive.place = Place::kMasked;
  masked_.append(receive);
}

/// @param at where the key (source, bits) hangs.
Receive* ReceiveQueue::take_among_all(Receive** at, uint32_t source, uint64_t bits) {
  Receive** any = table_.find(kAnySource, bits);
  if (*at == nullptr || (*any != nullptr && !is_older(**at, **any))) {
    at = any;
  }
  for (Receive* masked = masked_.first(); masked != nullptr; masked = masked_.next(*masked)) {
    if (*at != nullptr && is_older(**at, *masked)) {
      break;
    }
    if (masked->matches(source, bits)) {
      masked_.remove(*masked);
      left(*masked);
      return masked;
    }
  }
  if (*at == nullptr) {
    return nullptr;
  }
  wild_ -= (*at)->source == kAnySource;
  return take_first(at);
}

int ReceiveQueue::cancel(Receive& receive) {
  switch (receive.place) {
    case Place::kTable:
      table_.remove(receive);
      break;
    case Place::kMasked:
      masked_.remove(receive);
      break;
    default:
      return -ENOENT;
  }
  left(receive);
  return 0;
}

}  // namespace rio::tag
