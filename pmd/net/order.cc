#include "pmd/net/order.hpp"

#include <rte_cycles.h>

#include <algorithm>

namespace rio::pmd {
namespace {

/// It lies where the buffer's data begin, and was checked when the bundle was parked.
[[nodiscard]] BundleHeader header_of(const rte_mbuf* buffer) {
  BundleHeader header{};
  static_cast<void>(
      BundleHeader::decode(load_word(rte_pktmbuf_mtod(buffer, const uint8_t*)), &header));
  return header;
}

[[nodiscard]] int16_t distance(uint16_t number, uint16_t from) {
  return static_cast<int16_t>(number - from);
}

/// Whether a parked bundle is of an epoch that is over, or its number comes before another.
[[nodiscard]] bool is_before(const rte_mbuf* buffer, uint16_t epoch, int32_t number) {
  const BundleHeader header = header_of(buffer);
  return header.epoch != epoch || distance(header.number, static_cast<uint16_t>(number)) < 0;
}

}  // namespace

Order::Turn Order::turn_of_other(Source& source, const BundleHeader& header, rte_mbuf* buffer) {
  const bool same = source.known && header.epoch == source.epoch;
  const int16_t early = distance(header.number, source.expected);
  if (same && early < 0) {
    return Turn::kLate;
  }
  if (same && park(source, header.number, buffer)) {
    return Turn::kParked;
  }
  // Somebody who has started anew; or no place to wait: what is missing is given up.
  source.known = true;
  source.epoch = header.epoch;
  source.expected = static_cast<uint16_t>(header.number + 1);
  return Turn::kNow;
}

bool Order::park(Source& source, uint16_t number, rte_mbuf* buffer) {
  Source** place = std::find(waiting_.begin(), waiting_.end(), &source);
  place = place != waiting_.end() ? place : std::find(waiting_.begin(), waiting_.end(), nullptr);
  const bool full = parked_ >= parked_max_;
  if ((full && source.parked_count == 0) || place == waiting_.end()) {
    return false;
  }
  rte_mbuf** link = &source.parked;
  while (*link != nullptr && is_before(*link, source.epoch, number)) {
    link = &(*link)->next;
  }
  buffer->next = *link;
  *link = buffer;
  *place = &source;
  ++source.parked_count;
  since_ticks_ = parked_++ == 0 ? rte_rdtsc() : since_ticks_;
  ready_ = full ? &source : ready_;  // one too many: what its first one waits for is given up
  return true;
}

void Order::look_for_next(Source& source) {
  // Also those that were overtaken, since there was no place to wait, or by another epoch.
  if (is_before(source.parked, source.epoch, source.expected + 1)) {
    ready_ = &source;
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
  if (ready_ != nullptr || (!at_once && rte_rdtsc() - since_ticks_ < wait_ticks_)) {
    return;
  }
  const auto first =
      std::find_if(waiting_.begin(), waiting_.end(), [](const Source* s) { return s != nullptr; });
  if (first != waiting_.end()) {
    ready_ = *first;
  }
}

}  // namespace rio::pmd
