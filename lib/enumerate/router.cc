#include "lib/enumerate/router.hpp"

#include "lib/enumerate/csr.hpp"

namespace rio::enumerate {

int Router::set_route(const Address& at, uint32_t dest_id, uint32_t port) {
  const int rc = access_.write(at, Csr::kRouteDestId, dest_id);
  return rc != 0 ? rc : access_.write(at, Csr::kRoutePort, port);
}

int Router::get_route(const Address& at, uint32_t dest_id, uint32_t* port) {
  uint32_t word = 0;
  int rc = access_.write(at, Csr::kRouteDestId, dest_id);
  rc = rc != 0 ? rc : access_.read(at, Csr::kRoutePort, &word);
  if (rc == 0) {
    *port = word & 0xFF;
  }
  return rc;
}

int Router::turn(size_t node, uint32_t port) {
  if (turned_.size() < map_.nodes.size()) {
    turned_.resize(map_.nodes.size(), UINT32_MAX);
  }
  if (turned_[node] == port) {
    return 0;
  }
  turned_[node] = UINT32_MAX;
  const int rc = set_route({kProbeId, map_.nodes[node].hops}, kProbeId, port);
  if (rc == 0) {
    turned_[node] = port;
  }
  return rc;
}

int Router::reach(size_t node, Address* at) {
  std::vector<size_t> way;  // from the device back to the first switch
  for (size_t i = node; i != 0 && map_.nodes[i].parent != 0; i = map_.nodes[i].parent) {
    way.push_back(i);
  }
  for (; !way.empty(); way.pop_back()) {
    const Node& next = map_.nodes[way.back()];
    if (const int rc = turn(next.parent, next.parent_port); rc != 0) {
      return rc;
    }
  }
  *at = {kProbeId, map_.nodes[node].hops};
  return 0;
}

int Router::reach_behind(const Place& place, Address* at) {
  if (place.node == 0) {
    *at = {kProbeId, 0};
    return 0;
  }
  Address here;
  int rc = reach(place.node, &here);
  rc = rc != 0 ? rc : turn(place.node, place.port);
  if (rc == 0) {
    *at = {kProbeId, here.hops + 1};
  }
  return rc;
}

int Router::end_probe(size_t node, const Address& at) {
  if (node < turned_.size()) {
    turned_[node] = UINT32_MAX;
  }
  return set_route(at, kProbeId, kNoRoute);
}

uint32_t tree_route(const FabricMap& map, size_t node, size_t endpoint) {
  for (size_t i = endpoint; i != 0; i = map.nodes[i].parent) {
    if (map.nodes[i].parent == node) {
      return map.nodes[i].parent_port;
    }
  }
  return map.nodes[node].entry_port;  // toward the card: the endpoint is not below
}

}  // namespace rio::enumerate
