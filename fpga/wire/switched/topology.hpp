/// @file
/// What a fabric is made of: switches, endpoints, links. Read from a JSON file (docs/fabric.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rio::wire::switched {

/// Value of the host base device ID lock while no host holds it. RIO Part 3 §3.5.2
inline constexpr uint32_t kNobodyLocks = 0xFFFF;

struct DeviceSpec {
  std::string name;
  bool is_switch = false;
  uint32_t ports = 1;            ///< 1 to 255; an endpoint has one
  uint32_t route_entries = 256;  ///< destIDs that a switch's table holds, 256 to 65536
  bool present = true;           ///< false: nothing is plugged in there
  bool silent = false;           ///< its link is up, and it never answers
  uint32_t locked_by = kNobodyLocks;
  uint32_t dest_id = 0xFF;              ///< endpoints: base device ID; 0xFF: none was given yet
  uint32_t tag = 0;                     ///< component tag
  std::map<uint32_t, uint32_t> routes;  ///< switches: destID to port
  [[nodiscard]] bool operator==(const DeviceSpec&) const = default;
};

/// One end of a link. `device` is an index into Topology::devices.
struct PortName {
  size_t device = 0;
  uint32_t port = 0;
  [[nodiscard]] bool operator==(const PortName&) const = default;
};

struct LinkSpec {
  PortName ends[2];
  [[nodiscard]] bool operator==(const LinkSpec&) const = default;
};

/// A topology that was parsed is sound: names are unique, ports exist, no port has two links.
struct Topology {
  std::vector<DeviceSpec> devices;
  std::vector<LinkSpec> links;
  uint64_t loss_seed = 0;
  double loss_rate = 0.0;  ///< chance of each frame to be lost on its way, 0 to 1
};

/// Any thread. @param error what is wrong, with the remedy; set on failure only.
/// @return 0, or -EINVAL.
[[nodiscard]] int parse_topology(std::string_view json, Topology* out, std::string* error);

/// Parse a file as parse_topology() parses text. @return as it does, or -errno of the file.
[[nodiscard]] int load_topology(const std::string& path, Topology* out, std::string* error);

}  // namespace rio::wire::switched
