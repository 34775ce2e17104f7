#include "fpga/wire/switched/topology.hpp"

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <set>

#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "base/text_file.hpp"

namespace rio::wire::switched {
namespace {

using Json = nlohmann::json;

constexpr size_t kFileBytesMax = 4u << 20;
constexpr size_t kDevicesMax = 4096;
constexpr uint32_t kPortsMax = 255;
constexpr size_t kNameMax = 63;

/// Parses a topology. Keeps the first error as `error`.
class Parser {
 public:
  [[nodiscard]] bool parse(const Json& root) {
    const auto each = [&](const char* key, bool (Parser::*take)(const Json&)) {
      const auto it = root.find(key);
      if (it != root.end() && !it->is_array()) {
        return fail(std::string("\"") + key + "\" is not an array; write it as [...]");
      }
      return it == root.end() || std::all_of(it->begin(), it->end(),
                                             [&](const Json& one) { return (this->*take)(one); });
    };
    return keys(root, "the topology", {"switches", "endpoints", "links", "loss"}) && losses(root) &&
           each("switches", &Parser::a_switch) && each("endpoints", &Parser::endpoint) &&
           each("links", &Parser::link);
  }

  Topology topology;
  std::string error;

 private:
  [[nodiscard]] bool fail(const std::string& text) {
    error = text;
    return false;
  }

  [[nodiscard]] bool keys(const Json& object, const std::string& where,
                          std::initializer_list<std::string_view> known) {
    if (!object.is_object()) {
      return fail(where + " is not an object; write it as {\"name\": ...}");
    }
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        std::string text =
            std::string(where).append(": no key \"").append(key).append("\"; those allowed:");
        for (const std::string_view one : known) {
          text.append(" ").append(one);
        }
        return fail(text);
      }
    }
    return true;
  }

  template <typename Number>
  [[nodiscard]] bool number(const Json& object, const char* key, const std::string& where,
                            uint64_t first, uint64_t last, Number* out) {
    const auto it = object.find(key);
    if (it == object.end()) {
      return true;  // the default stays
    }
    if (!it->is_number_unsigned() || it->get<uint64_t>() < first || it->get<uint64_t>() > last) {
      return fail(where + ": " + key + " is " +
                  it->dump(-1, ' ', false, Json::error_handler_t::replace) + "; give " +
                  std::to_string(first) + " to " + std::to_string(last));
    }
    *out = it->get<Number>();
    return true;
  }

  [[nodiscard]] bool flag(const Json& object, const char* key, const std::string& where,
                          bool* out) {
    const auto it = object.find(key);
    if (it != object.end() && !it->is_boolean()) {
      return fail(where + ": " + key + " is neither true nor false");
    }
    *out = it == object.end() ? *out : it->get<bool>();
    return true;
  }

  [[nodiscard]] bool name(const Json& object, DeviceSpec* device) {
    const auto it = object.find("name");
    device->name = it != object.end() && it->is_string() ? it->get<std::string>() : "";
    if (!base::is_name(device->name, kNameMax, "_.-")) {
      return fail(
          "device " + std::to_string(topology.devices.size()) +
          ": no name, or a bad one; give \"name\" with 1 to 63 letters, digits, '_', '.', '-'");
    }
    if (index_.contains(device->name)) {
      return fail("two devices are called " + device->name + "; rename one");
    }
    return true;
  }

  [[nodiscard]] bool common(const Json& object, DeviceSpec* device) {
    if (topology.devices.size() >= kDevicesMax) {
      return fail("more than " + std::to_string(kDevicesMax) + " devices; leave some out");
    }
    const std::string& where = device->name;
    if (!number(object, "locked_by", where, 0u, kUnlocked, &device->locked_by) ||
        !number(object, "tag", where, 0u, UINT32_MAX, &device->tag) ||
        !flag(object, "present", where, &device->present) ||
        !flag(object, "silent", where, &device->silent)) {
      return false;
    }
    index_[device->name] = topology.devices.size();
    topology.devices.push_back(std::move(*device));
    return true;
  }

  [[nodiscard]] bool a_switch(const Json& object) {
    DeviceSpec device;
    device.is_switch = true;
    device.ports = 8;
    return keys(object, "a switch",
                {"name", "ports", "route_entries", "present", "silent", "locked_by", "tag",
                 "routes"}) &&
           name(object, &device) &&
           number(object, "ports", device.name, 1u, kPortsMax, &device.ports) &&
           number(object, "route_entries", device.name, 256u, 65536u, &device.route_entries) &&
           routes(object, &device) && common(object, &device);
  }

  [[nodiscard]] bool routes(const Json& object, DeviceSpec* device) {
    const auto it = object.find("routes");
    if (it == object.end()) {
      return true;
    }
    if (!it->is_object()) {
      return fail(device->name + ": \"routes\" is not an object; write it as {\"DESTID\": PORT}");
    }
    for (const auto& [key, port] : it->items()) {
      uint32_t dest_id = 0;
      if (!base::read_number(key, &dest_id) || dest_id >= device->route_entries ||
          !port.is_number_unsigned() || port.get<uint64_t>() >= device->ports) {
        return fail(device->name + ": route \"" + key + "\": give a destID below " +
                    std::to_string(device->route_entries) + " and a port below " +
                    std::to_string(device->ports));
      }
      device->routes[dest_id] = port.get<uint32_t>();
    }
    return true;
  }

  [[nodiscard]] bool endpoint(const Json& object) {
    DeviceSpec device;
    return keys(object, "an endpoint",
                {"name", "present", "silent", "locked_by", "tag", "dest_id"}) &&
           name(object, &device) &&
           number(object, "dest_id", device.name, 0u, 0xFFFEu, &device.dest_id) &&
           common(object, &device);
  }

  [[nodiscard]] bool link(const Json& ends) {
    LinkSpec link;
    if (!ends.is_array() || ends.size() != 2) {
      return fail("a link is not a pair; write it as [\"ENDPOINT\", \"SWITCH:PORT\"]");
    }
    if (!link_end(ends[0], &link.ends[0]) || !link_end(ends[1], &link.ends[1])) {
      return false;
    }
    topology.links.push_back(link);
    return true;
  }

  [[nodiscard]] bool link_end(const Json& text, PortName* out) {
    const std::string end = text.is_string() ? text.get<std::string>() : "";
    const size_t colon = end.find(':');
    const auto it = index_.find(end.substr(0, colon));
    if (it == index_.end()) {
      return fail("link end \"" + end +
                  "\": no such device; write \"ENDPOINT\" or \"SWITCH:PORT\"");
    }
    const DeviceSpec& device = topology.devices[it->second];
    out->device = it->second;
    out->port = 0;
    if (device.is_switch) {
      if (colon == std::string::npos || !base::read_number(end.substr(colon + 1), &out->port) ||
          out->port >= device.ports) {
        return fail("link end \"" + end + "\": give a port of " + device.name + ", 0 to " +
                    std::to_string(device.ports - 1) + ", as " + device.name + ":0");
      }
    } else if (colon != std::string::npos) {
      return fail("link end \"" + end + "\": an endpoint has one port; leave out the colon");
    }
    if (!linked_.emplace(out->device, out->port).second) {
      return fail("link end \"" + end + "\" has a link already; take another port");
    }
    return true;
  }

  [[nodiscard]] bool losses(const Json& root) {
    const auto it = root.find("loss");
    if (it == root.end()) {
      return true;
    }
    if (!keys(*it, "loss", {"seed", "rate"}) ||
        !number(*it, "seed", "loss", 0, UINT64_MAX, &topology.loss_seed)) {
      return false;
    }
    const auto rate = it->find("rate");
    if (rate == it->end() || !rate->is_number() ||
        !(rate->get<double>() >= 0.0 && rate->get<double>() <= 1.0)) {
      return fail("loss: give a rate from 0.0 to 1.0");
    }
    topology.loss_rate = rate->get<double>();
    return true;
  }

  std::map<std::string, size_t, std::less<>> index_;
  std::set<std::pair<size_t, uint32_t>> linked_;
};

}  // namespace

int parse_topology(std::string_view json, Topology* out, std::string* error) {
  const Json root = Json::parse(json, nullptr, false);
  if (root.is_discarded()) {
    *error = "not JSON; docs/fabric.md describes topology files";
    return -EINVAL;
  }
  Parser parser;
  if (!parser.parse(root)) {
    *error = parser.error;
    return -EINVAL;
  }
  *out = std::move(parser.topology);
  return 0;
}

int load_topology(const std::string& path, Topology* out, std::string* error) {
  if (path.empty()) {
    *error = "the path of the topology file is empty; name a topology file";
    return -EINVAL;
  }
  std::string text;
  int rc = base::read_text_file(path, kFileBytesMax, &text, error);
  if (rc != 0) {
    *error += "; name a topology file";
    return rc;
  }
  rc = parse_topology(text, out, error);
  if (rc != 0) {
    *error = path + ": " + *error;
  }
  return rc;
}

}  // namespace rio::wire::switched
