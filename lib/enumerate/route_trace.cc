#include "lib/enumerate/route_trace.hpp"

#include <algorithm>
#include <cerrno>

#include "lib/enumerate/csr.hpp"

namespace rio::enumerate {
namespace {

// The place that the first link of an endpoint leads to.
Place neighbour_of(const FabricMap& map, size_t endpoint) {
  for (size_t i = 1; i < map.nodes.size(); ++i) {
    if (endpoint == 0 && map.nodes[i].parent == 0) {
      return {i, map.nodes[i].entry_port};
    }
  }
  return {map.nodes[endpoint].parent, map.nodes[endpoint].parent_port};
}

}  // namespace

int trace_route(const FabricMap& map, uint32_t source, uint32_t dest, RouteTrace* out) {
  const auto from = std::find_if(map.nodes.begin(), map.nodes.end(), [&](const Node& node) {
    return !node.is_switch && node.dest_id == source;
  });
  if (from == map.nodes.end()) {
    return -ENOENT;
  }
  RouteTrace trace;
  Place at = neighbour_of(map, static_cast<size_t>(from - map.nodes.begin()));
  while (at.node != kNoNode && map.nodes[at.node].is_switch) {
    const Node& node = map.nodes[at.node];
    const uint32_t port = dest < node.routes.size() ? node.routes[dest] : kNoRoute;
    trace.steps.push_back({at.node, at.port, port});
    if (port >= node.ports.size()) {
      trace.why = map.name(at.node) + " has no route to it";
      break;
    }
    const auto same = [&](const RouteStep& step) { return step.node == at.node; };
    if (std::count_if(trace.steps.begin(), trace.steps.end(), same) > 1) {
      trace.why = "the routes go round in a circle";
      break;
    }
    const PortView& view = node.ports[port];
    if (view.state != PortView::kNode && view.state != PortView::kUp &&
        view.state != PortView::kLoop) {
      trace.why = "no device was seen behind " + map.place({at.node, port});
      break;
    }
    at = {view.node, view.peer_port};
  }
  if (trace.why.empty() && at.node == kNoNode) {
    trace.why = "nothing is plugged in there";
  } else if (trace.why.empty() && map.nodes[at.node].dest_id != dest) {
    trace.why = "it ends at " + map.name(at.node);
  }
  *out = std::move(trace);
  return 0;
}

}  // namespace rio::enumerate
