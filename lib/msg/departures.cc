#include "lib/msg/departures.hpp"

namespace rio::msg {

/// Record an event. @return the link whose peer has gone; null: no known peer has gone.
Link* Departures::note(const pmd::CardEvent& event) {
  if (event.type == regs::EventType::kOverflow) {
    gone_.clear();  // some peers may have come back
  }
  if (event.type != regs::EventType::kPartner) {
    return nullptr;
  }
  if (event.info != 0) {
    gone_.erase(event.source);
    return nullptr;
  }
  gone_.insert(event.source);
  return peers_.find(event.source);
}

void Departures::end(Link& link) {
  sessions_.peer_gone(link);
  if (link.rest.on) {
    silence_.end_rest(link);
  }
}

}  // namespace rio::msg
