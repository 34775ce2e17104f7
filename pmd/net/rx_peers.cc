// Doorbells: peers that come and go.
#include <utility>

#include "pmd/net/rx.hpp"

namespace rio::pmd {

void NetRx::look_at_doorbells() {
  DoorbellEvent events[kFetch];
  const uint16_t n = doorbells_->burst(events, kFetch);
  for (uint16_t i = 0; i < n; ++i) {
    if (events[i].source < kNetDestIds) {  // others have no address
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
    peers_.mates.remove(source);  // announced by another port that had its destID before
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

/// A peer that sends and has not joined knows us from before we were started. It does not call, so
/// we do: once, since it may be of another kind, or a queue that has no doorbells. Or it was
/// asleep.
void NetRx::meet(uint32_t dest_id) {
  if (peers_.asleep.remove(dest_id) || (!peers_.joined.has(dest_id) && !met_.add(dest_id))) {
    peers_.owe_greeting(dest_id);
  }
}

/// Whether the current message's source may send with a source address.
bool NetRx::is_of_sender(Mac mac) {
  const uint32_t port = dest_id_of(mac);
  const uint32_t sender = dest_id_of(current_.own_mac);
  // The port's word for it may wait in the ring of doorbells. Looked for once a burst at most.
  if (!peers_.may_send(sender, mac) && std::exchange(may_listen_, false)) {
    look_at_doorbells();
  }
  if (!peers_.may_send(sender, mac)) {
    if (port != kNoNetDestId && sender >= port && sender - port <= kMoreIdsMask) {
      meet(port);
    }
    return false;
  }
  current_.port_mac = mac;  // of all frames of the message
  return true;
}

void NetRx::listen() {
  if (!turn_.take()) {
    return;
  }
  if (queue_ != nullptr) {
    look_at_doorbells();
  }
  turn_.give();
}

}  // namespace rio::pmd
