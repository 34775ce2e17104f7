#include "pmd/net/order.hpp"

#include <rte_cycles.h>

#include <algorithm>

namespace rio::pmd {
namespace {

[[nodiscard]] int16_t distance(uint16_t number, uint16_t from) {
  return static_cast<int16_t>(number - from);
}

/// Whether a parked bundle belongs to an ended epoch, or its number comes before another.
[[nodiscard]] bool is_before(const rte_mbuf* buffer, uint16_t epoch, int32_t number) {
  const BundleHeader header = header_of(buffer);
  return header.epoch != epoch || distance(header.number, static_cast<uint16_t>(number)) < 0;
}

}  // namespace

Order::Turn Order::turn_of_slow(Source& source, const BundleHeader& header, rte_mbuf* buffer) {
  const bool same = source.known && header.epoch == source.epoch;
  const int16_t early = distance(header.number, source.expected);
  if (same && early < 0) {
    return Turn::kLate;
  }
  if (same && park(source, header.number, buffer)) {
    return Turn::kParked;
  }
  // Either the sender has started anew, or there is no place to park: give up the missing bundles.
  source.known = true;
  source.epoch = header.epoch;
  source.expected = static_cast<uint16_t>(header.number + 1);
  return Turn::kNow;
}

bool Order::park(Source& source, uint16_t number, rte_mbuf* buffer) {
  Source** place = std::find(waiting_.begin(), waiting_.end(), &source);
  place = place != waiting_.end() ? place : std::find(waiting_.begin(), waiting_.end(), nullptr);
  const bool full = parked_ >= parked_max_;
  if (parked_max_ == 0 || place == waiting_.end()) {
    return false;
  }
  rte_mbuf** link = &source.parked;
  while (*link != nullptr && is_before(*link, source.epoch, number)) {
    link = &(*link)->next;
  }
  buffer->next = *link;
  *link = buffer;
  *place = &source;
  if (source.parked_count++ == 0) {
    begin_wait(source);
  }
  ++parked_;
  if (full) {  // parking is full: the sender with the most parked bundles stops waiting
    ready_ =
        *std::max_element(waiting_.begin(), waiting_.end(), [](const Source* a, const Source* b) {
          return (a == nullptr ? 0 : a->parked_count) < (b == nullptr ? 0 : b->parked_count);
        });
  }
  return true;
}

void Order::begin_wait(Source& source) {
  source.awaited = source.expected;
  source.since_ticks = rte_rdtsc();
}

void Order::look_for_next(Source& source) {
  // Also bundles that were overtaken, for lack of a place to park, or by another epoch.
  if (is_before(source.parked, source.epoch, source.expected + 1)) {
    ready_ = &source;
  } else if (source.awaited != source.expected) {
    begin_wait(source);  // the awaited bundle is here: wait for the next one
  }
}

rte_mbuf* Order::next(Source** source) {
  Source& from = *ready_;
  ready_ = nullptr;
  rte_mbuf* const buffer = from.parked;
  from.parked = buffer->next;
  buffer->next = nullptr;
  --parked_;
  if (!is_before(buffer, from.epoch, from.expected)) {
    from.expected = static_cast<uint16_t>(header_of(buffer).number + 1);
  }
  if (--from.parked_count == 0) {
    std::replace(waiting_.begin(), waiting_.end(), &from, static_cast<Source*>(nullptr));
  }
  *source = &from;
  return buffer;
}

void Order::give_up_waiting(bool at_once) {
  if (ready_ != nullptr) {
    return;
  }
  // Each sender has a clock of its own: a sender that always has something parked must not end
  // another's wait.
  const uint64_t now_ticks = rte_rdtsc();
  const auto first = std::find_if(waiting_.begin(), waiting_.end(), [&](const Source* s) {
    return s != nullptr && (at_once || now_ticks - s->since_ticks >= wait_ticks_);
  });
  if (first != waiting_.end()) {
    ready_ = *first;
  }
}

}  // namespace rio::pmd
