// Any bytes as a topology file: it is refused with a reason, or valid. The simulator makes a
// network of a valid one, or refuses it with a reason.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "fpga/sim/file_fabric.hpp"
#include "fpga/wire/switched/topology.hpp"

namespace {

bool sound(const rio::wire::switched::Topology& topology) {
  std::set<std::string> names;
  for (const rio::wire::switched::DeviceSpec& device : topology.devices) {
    if (!names.insert(device.name).second || device.ports < 1 || device.ports > 255 ||
        device.route_entries < 256 || device.route_entries > 65536 || device.locked_by > 0xFFFF) {
      return false;
    }
    for (const auto& [dest_id, port] : device.routes) {
      if (dest_id >= device.route_entries || port >= device.ports) {
        return false;
      }
    }
  }
  std::set<std::pair<size_t, uint32_t>> linked;
  for (const rio::wire::switched::LinkSpec& link : topology.links) {
    for (const rio::wire::switched::PortName& end : link.ends) {
      if (end.device >= topology.devices.size() || end.port >= topology.devices[end.device].ports ||
          !linked.emplace(end.device, end.port).second) {
        return false;
      }
    }
  }
  return topology.loss_rate >= 0.0 && topology.loss_rate <= 1.0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rio::wire::switched::Topology topology;
  std::string error;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  if (rio::wire::switched::parse_topology(json, &topology, &error) != 0) {
    if (error.empty()) {
      std::abort();
    }
    return 0;
  }
  rio::sim::FileFabric fabric;
  if (!sound(topology) ||
      (rio::sim::FileFabric::create(topology, &fabric, &error) != 0 && error.empty())) {
    std::abort();
  }
  return 0;
}
