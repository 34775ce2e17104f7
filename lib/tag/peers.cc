#include "lib/tag/peers.hpp"

namespace rio::tag {

Peer* Peers::known(Address address) const {
  const auto known = peers_.find(address);
  return known != peers_.end() ? known->second.get() : nullptr;
}

Peer* Peers::get(Address address) {
  if (Peer* const peer = known(address); peer != nullptr) {
    return peer;
  }
  auto made = std::make_unique<Peer>(port_);
  made->address = address;
  if (address == kAnySource || port_.route(dest_id_of(address), context_of(address), context_,
                                           msg::Kind::kData, &made->route) != 0) {
    return nullptr;
  }
  made->session = session_of(*made->route.link);
  Peer* const peer = made.get();
  peers_.emplace(address, std::move(made));
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
