// Messages left over from a session that ended because another process has the peer's destID: those
// that may be lost, and those that were never received.
#include <algorithm>

#include "lib/msg/port.hpp"

namespace rio::msg {
namespace {

/// Whether a message holds all bytes of the user's message.
[[nodiscard]] bool is_whole(Kind kind) {
  return kind == Kind::kData || kind == Kind::kDataImmediate;
}

}  // namespace

/// Searches the ring and the messages queued for retransmission. Each slot keeps the last message
/// sent from it; older ones have arrived. Transfers of large data end with the session. @param key
/// of the session, as the peer named it. @param not_taken null, or the first message that the
/// peer's present process did not receive. @return a value for Link::lost; sets Link::unsent.
uint64_t Port::find_lost(Link& link, uint32_t key, const uint32_t* not_taken) {
  uint64_t lost = 0;
  std::vector<Again> unsent;
  const auto sort_out = [&](const Again& message, bool nobody_took) {
    const HeaderWords header = load_header(message.bytes.data());
    if (header.key() != key || !header.takes_credit()) {
      return;
    }
    if (nobody_took && is_whole(header.kind())) {
      unsent.push_back(message);
    } else {
      lost |= 1ull << header.from();
    }
  };
  const uint32_t oldest = tx_->oldest_index();
  for (uint32_t back = 1u << kRingLog2; back != 0; --back) {
    const uint32_t entry = tx_->next_index() - back;
    const uint8_t* const slot = tx_->slot_va(entry);
    const bool is_out = static_cast<int32_t>(entry - oldest) >= 0 && tx_->is_out(entry);
    const bool is_late =
        not_taken != nullptr && static_cast<int32_t>(load_header(slot).number() - *not_taken) >= 0;
    if (tx_->slot_dest_id(entry) != link.dest_id() || !tx_->is_slot(entry) ||
        (!is_out && !is_late)) {
      continue;
    }
    const bool again = std::any_of(resent_.begin(), resent_.end(),
                                   [&](const Resent& resent) { return resent.entry == entry; });
    sort_out({link.index(), link.session, 0, {slot, slot + tx_->slot_bytes(entry)}},
             !is_out && !again);
  }
  const auto sort_out_again = [&](const Again& again) {
    if (again.link == link.index() && again.session == link.session) {
      sort_out(again, again.never_left);
    }
  };
  std::for_each(again_.begin(), again_.end(), sort_out_again);
  std::for_each(parked_.begin(), parked_.end(), sort_out_again);
  std::for_each(flushed_.begin(), flushed_.end(),
                [&](const Flushed& flushed) { sort_out_again(flushed.message); });
  std::erase_if(unsent, [&](const Again& message) {
    return (lost >> load_header(message.bytes.data()).from() & 1) != 0;
  });
  std::sort(unsent.begin(), unsent.end(), [](const Again& one, const Again& other) {
    return static_cast<int32_t>(load_header(one.bytes.data()).number() -
                                load_header(other.bytes.data()).number()) < 0;
  });
  link.unsent = std::move(unsent);
  return lost;
}

/// For a session that is over already: only now the peer's present process tells which messages it
/// did not receive.
void Port::reset_late(Link& link, uint32_t not_taken) {
  const std::vector<Again> before = std::move(link.unsent);
  uint64_t lost = find_lost(link, link.keys.former, &not_taken);
  if (link.state == LinkState::kUp || !before.empty()) {
    for (const Again& message : link.unsent) {  // later messages may have overtaken it
      lost |= 1ull << load_header(message.bytes.data()).from();
    }
    link.unsent = before;
  }
  link.keys.former = 0;
  link.lost |= lost;
  ++sessions_ended_;
}

}  // namespace rio::msg
