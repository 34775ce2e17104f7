/// @file
/// The way between two endpoints, by the route tables that a Looker has read.
#pragma once

#include <string>
#include <vector>

#include "lib/enumerate/fabric_map.hpp"

namespace rio::enumerate {

/// A switch on the way.
struct RouteStep {
  size_t node;
  uint32_t in_port;
  uint32_t out_port;
};

struct RouteTrace {
  std::vector<RouteStep> steps;
  std::string why;  ///< it does not arrive; empty: it does
};

/// @return 0, or -ENOENT: no endpoint with the destID `source` was seen.
[[nodiscard]] int trace_route(const FabricMap& map, uint32_t source, uint32_t dest,
                              RouteTrace* out);

}  // namespace rio::enumerate
