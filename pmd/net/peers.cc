// The source addresses that a peer may use, and the receiver of a frame for an address.
#include "pmd/net/peers.hpp"

namespace rio::pmd {

bool Peers::may_send(uint32_t source, Mac mac) const {
  const uint32_t owner = dest_id_of(mac);
  if (owner != kNoNetDestId && sends_for(source, owner)) {
    return true;
  }
  // A port stands in for another one that has announced it as a mate, or that has not joined.
  const auto stands_in = [this](uint32_t port, uint32_t absent) {
    return mates.has(absent, port) || (!joined.has(absent) && mates.has(port, absent));
  };
  // Check each port that may have `source` as one of its queues.
  for (uint32_t behind = 0; behind <= kMoreIdsMask && behind <= source; ++behind) {
    const uint32_t port = source - behind;
    if (sends_for(source, port) &&
        (owner != kNoNetDestId ? stands_in(port, owner) : mates.has(port, port))) {
      return !is_multicast(mac);
    }
  }
  return false;
}

uint32_t Peers::receiver_of_absent(Mac mac) const {
  const uint32_t owner = dest_id_of(mac);
  uint32_t found = kNoNetDestId;
  if (owner == kNoNetDestId && is_multicast(mac)) {
    return kNoNetDestId;
  }
  if (owner == kNoNetDestId) {  // of no card: for the only peer, if there is just one
    uint32_t count = 0;
    joined.for_each([&](uint32_t dest_id) {
      found = dest_id;
      return ++count == 1;
    });
    return count == 1 ? found : kNoNetDestId;
  }
  mates.for_each([&](uint32_t port, uint32_t mate) {
    const uint32_t other = port == owner ? mate : mate == owner ? port : owner;
    found = other != owner && other != own.load(std::memory_order_relaxed) && joined.has(other)
                ? other
                : found;
    return found == kNoNetDestId;
  });
  return found == kNoNetDestId && reachable.has(owner) ? owner : found;
}

}  // namespace rio::pmd
