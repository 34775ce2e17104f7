#include "lib/tag/peers.hpp"

namespace rio::tag {

Peer* Peers::known(Address address) const {
  const auto known = peers_.find(address);
  return known != peers_.end() ? known->second.get() : nullptr;
}

Peer* Peers::get(Address address) {
  Peer* const peer = known(address);
  if (peer != nullptr && peer->route.out != nullptr) {
    return peer;
  }
  msg::Route route;
  if (port_.route(dest_id_of(address), context_of(address), context_, msg::Kind::kData, &route) !=
      0) {
    return nullptr;
  }
  if (peer != nullptr) {
    peer->route = route;
    return peer;
  }
  return &add(address, route);
}

Peer& Peers::of(const msg::Origin& origin) {
  const Address from = address(origin.link->dest_id(), origin.from);
  Peer* const peer = known(from);
  return peer != nullptr ? *peer : add(from, {.link = origin.link});
}

Peer& Peers::add(Address address, const msg::Route& route) {
  auto& peer = *peers_.emplace(address, std::make_unique<Peer>(port_)).first->second;
  peer.address = address;
  peer.route = route;
  peer.session = session_of(*route.link);
  return peer;
}

const msg::Link* Peers::link_of(Address address) {
  const Peer* const peer = address != self() ? get(address) : nullptr;
  return peer != nullptr ? peer->route.link : nullptr;
}

uint32_t& Peers::session_of(const msg::Link& link) {
  constexpr uint32_t kFirstSession = 1;
  if (link.index() >= sessions_.size()) {
    sessions_.resize(link.index() + 1, kFirstSession);
  }
  return sessions_[link.index()];
}

}  // namespace rio::tag
