// Doorbells: peers that join and leave.
#include <utility>

#include "pmd/net/rx.hpp"

namespace rio::pmd {

void NetRx::poll_doorbells() {
  DoorbellEvent events[kFetch];
  const uint16_t n = doorbells_->burst(events, kFetch);
  for (uint16_t i = 0; i < n; ++i) {
    if (events[i].source < kNetDestIds) {  // higher destIDs have no address
      heard(events[i].source, events[i].info);
    }
  }
  teller_->tell();
}

void NetRx::heard(uint32_t source, uint16_t info) {
  if (info == kLeaveDoorbell) {
    counts_.leaves.add(peers_.joined.has(source) ? 1 : 0);
    peers_.take_away(source);
    peers_.known.remove(source);
    peers_.set_more(source, 0);
    return;
  }
  const bool is_mate = info >= kMateDoorbell;
  const auto kind = static_cast<uint16_t>(info & ~kMoreIdsMask);
  const bool ours = kind == kCallDoorbell || kind == kAnswerDoorbell;
  if (!ours && !is_mate && info != kJoinDoorbell) {
    return;
  }
  peers_.asleep.remove(source);
  const bool is_new = !peers_.joined.add(source);
  peers_.known.add(source);
  peers_.reachable.add(source);
  counts_.joins.add(is_new ? 1 : 0);
  if (is_new) {
    peers_.mates.remove(source);  // announced by an earlier port with this destID
  }
  if (const uint32_t mate = mate_of(source, info); is_mate && mate < kNetDestIds) {
    peers_.mates.add(source, mate);
  }
  if (ours) {
    peers_.set_more(source, info & kMoreIdsMask);
    peers_.bundles.add(source);
    peers_.owe(peers_.owed_mates, source);
  }
  if (kind == kCallDoorbell) {
    peers_.owe(peers_.owed_answer, source);
  } else if (info == kJoinDoorbell && is_new) {
    peers_.owe_greeting(source);
  }
}

/// Calls a peer that sends although it has not joined: it knows us from before we were started, or
/// was asleep. It does not call us, so we call it: once, since it may be of another kind, or be a
/// queue without doorbells.
void NetRx::meet(uint32_t dest_id) {
  if (peers_.asleep.remove(dest_id) || (!peers_.joined.has(dest_id) && !met_.add(dest_id))) {
    peers_.owe_greeting(dest_id);
  }
}

/// Whether the current message's source may use a source address.
bool NetRx::is_of_sender(Mac mac) {
  const uint32_t port = dest_id_of(mac);
  const uint32_t sender = dest_id_of(current_.own_mac);
  // The doorbell that allows it may still be in the ring: check, at most once a burst.
  if (!peers_.may_send(sender, mac) && std::exchange(may_listen_, false)) {
    poll_doorbells();
  }
  if (!peers_.may_send(sender, mac)) {
    if (port != kNoNetDestId && sender >= port && sender - port <= kMoreIdsMask) {
      meet(port);
    }
    return false;
  }
  current_.port_mac = mac;  // for all frames of this message
  return true;
}

void NetRx::listen() {
  const InTurn inside(turn_);
  if (inside && queue_ != nullptr) {
    poll_doorbells();
  }
}

}  // namespace rio::pmd
