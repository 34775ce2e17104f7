/// @file
/// Route tables of switches, and the way to a device that has no destID yet: the probe ID's routes
/// are turned toward it, switch by switch.
#pragma once

#include <vector>

#include "lib/enumerate/fabric_map.hpp"
#include "lib/enumerate/maint_access.hpp"

namespace rio::enumerate {

/// One thread. Functions return 0 or as PatientAccess.
class Router {
 public:
  /// @param access, map outlive the object; nodes may be added to the map.
  Router(PatientAccess& access, const FabricMap& map) : access_(access), map_(map) {}

  /// Turn the probe ID toward a device. @param at its address, until the next such call.
  [[nodiscard]] int reach(size_t node, Address* at);
  /// Turn the probe ID toward the device behind a port of a switch, or behind the card itself (node
  /// 0).
  [[nodiscard]] int reach_behind(const Place& place, Address* at);
  /// Turn the probe ID toward nothing at a switch that was reached.
  [[nodiscard]] int end_probe(size_t node, const Address& at);

  /// One entry of a route table. Anything that is no port of the switch: no route.
  [[nodiscard]] int set_route(const Address& at, uint32_t dest_id, uint32_t port);
  [[nodiscard]] int get_route(const Address& at, uint32_t dest_id, uint32_t* port);

 private:
  [[nodiscard]] int turn(size_t node, uint32_t port);

  PatientAccess& access_;
  const FabricMap& map_;
  std::vector<uint32_t> turned_;  // by node: port of the probe ID; UINT32_MAX: unknown
};

/// @param node a switch. @return its port by which an endpoint (or node 0) is reached over the tree
/// in which the devices were found. Such routes have no circle, and neither have the queues along
/// them.
[[nodiscard]] uint32_t tree_route(const FabricMap& map, size_t node, size_t endpoint);

}  // namespace rio::enumerate
