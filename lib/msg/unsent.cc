#include "lib/msg/unsent.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rio::msg {
namespace {

/// Whether a message of the card holds a whole user message.
[[nodiscard]] bool is_whole(Kind kind) {
  return kind == Kind::kData || kind == Kind::kDataImmediate;
}

[[nodiscard]] HeaderWords header_of(const Again& message) {
  return load_header(message.bytes.data());
}

}  // namespace

uint64_t find_lost(Link& link, uint32_t key, const uint32_t* not_taken, const Outbox& outbox,
                   const Retries& retries) {
  const pmd::TxQueue& ring = outbox.ring();
  uint64_t lost = 0;
  std::vector<Again> unsent;
  const auto sort_out = [&](const Again& message, bool not_taken_yet) {
    const HeaderWords header = header_of(message);
    if (header.key() != key || !header.takes_credit()) {
      return;
    }
    if (not_taken_yet && is_whole(header.kind())) {
      unsent.push_back(message);
    } else {
      lost |= 1ull << header.from();
    }
  };
  // Each slot keeps its last message; older ones have arrived. Large data ends with the session.
  const uint32_t oldest = ring.oldest_index();
  for (uint32_t back = 1u << Outbox::kRingLog2; back != 0; --back) {
    const uint32_t entry = ring.next_index() - back;
    const uint8_t* const slot = ring.slot_va(entry);
    const bool is_out = static_cast<int32_t>(entry - oldest) >= 0 && ring.is_out(entry);
    const bool is_late =
        not_taken != nullptr && static_cast<int32_t>(load_header(slot).number() - *not_taken) >= 0;
    if (ring.slot_dest_id(entry) != link.dest_id() || !ring.is_slot(entry) ||
        (!is_out && !is_late)) {
      continue;
    }
    sort_out({link.index(), link.session, 0, {slot, slot + ring.slot_bytes(entry)}},
             !is_out && !retries.is_resent(entry));
  }
  retries.for_each(link, [&](const Again& again) { sort_out(again, again.never_left); });
  std::erase_if(unsent,
                [&](const Again& message) { return (lost >> header_of(message).from() & 1) != 0; });
  std::sort(unsent.begin(), unsent.end(), [](const Again& one, const Again& other) {
    return static_cast<int32_t>(header_of(one).number() - header_of(other).number()) < 0;
  });
  link.unsent = std::move(unsent);
  return lost;
}

void find_lost_late(Link& link, uint32_t not_taken, const Outbox& outbox, const Retries& retries) {
  const std::vector<Again> before = std::move(link.unsent);
  uint64_t lost = find_lost(link, link.keys.former, &not_taken, outbox, retries);
  if (link.state == LinkState::kUp || !before.empty()) {
    for (const Again& message : link.unsent) {  // messages of the new session may have overtaken it
      lost |= 1ull << header_of(message).from();
    }
    link.unsent = before;
  }
  link.keys.former = 0;
  link.lost |= lost;
}

}  // namespace rio::msg
