#include "apps/tool/fabric_view.hpp"

#include <array>

#include "apps/common/columns.hpp"
#include "base/formatted.hpp"

namespace rio::tool {

using enumerate::FabricMap;
using enumerate::kNoNode;
using enumerate::Node;
using enumerate::PortView;
using enumerate::Problem;

namespace {

/// By PortView::State.
constexpr std::array kStateNames = {"down", "to this card", "device",
                                    "loop", "skipped",      "not looked at"};
static_assert(kStateNames.size() == PortView::kUnknown + 1);

void indent(std::string* out, uint32_t depth) {
  out->append(size_t{2} * depth, ' ');
}

void device_line(const FabricMap& map, size_t node, std::string* out) {
  const Node& device = map.nodes[node];
  *out += map.name(node);
  if (node == 0) {
    *out += ", destID " + std::to_string(device.dest_id);
  }
  *out += "  " + identity_text(device.identity);
  if (device.is_switch) {
    *out += "  " + std::to_string(device.ports.size()) + " ports, entered by port " +
            std::to_string(device.entry_port);
  }
  if (device.locked_by != enumerate::kUnlocked) {
    *out += "  locked by host " + std::to_string(device.locked_by);
  }
  *out += '\n';
}

/// A device, and what is behind its ports. The depth of the recursion is that of the tree, which
/// the hop count bounds.
void subtree(const FabricMap& map, size_t node, uint32_t depth, std::string* out) {
  device_line(map, node, out);
  const std::vector<PortView>& ports = map.nodes[node].ports;
  for (uint32_t port = 0; port < ports.size(); ++port) {
    const PortView& view = ports[port];
    if (view.state == PortView::kDown || view.state == PortView::kUp ||
        view.state == PortView::kUnknown) {
      continue;
    }
    indent(out, depth + 1);
    *out += "port " + std::to_string(port) + "  ";
    if (view.state == PortView::kNode) {
      subtree(map, view.node, depth + 1, out);
    } else if (view.state == PortView::kLoop) {
      *out += "loop to " + map.place({view.node, view.peer_port}) + '\n';
    } else {
      *out += "skipped: " + view.why + '\n';
    }
  }
}

size_t loop_ends(const FabricMap& map) {
  size_t count = 0;
  for (const Node& node : map.nodes) {
    for (const PortView& view : node.ports) {
      count += view.state == PortView::kLoop ? 1 : 0;
    }
  }
  return count;
}

Json port_json(const FabricMap& map, uint32_t port, const PortView& view) {
  Json json = {{"port", port}, {"state", kStateNames.at(view.state)}};
  if (view.node != kNoNode) {
    json["node"] = view.node;
    if (map.nodes[view.node].is_switch) {
      json["peer_port"] = view.peer_port;
    }
  }
  if (!view.why.empty()) {
    json["why"] = view.why;
  }
  return json;
}

Json node_json(const FabricMap& map, size_t index) {
  const Node& node = map.nodes[index];
  Json json = {{"node", index},
               {"name", map.name(index)},
               {"kind", node.is_switch ? "switch" : "endpoint"},
               {"identity", identity_text(node.identity)},
               {"tag", node.tag},
               {"hops", node.hops}};
  if (!node.is_switch) {
    json["dest_id"] = node.dest_id;
  }
  if (node.parent != kNoNode) {
    json["parent"] = node.parent;
    json["parent_port"] = node.parent_port;
  }
  if (node.locked_by != enumerate::kUnlocked) {
    json["locked_by"] = node.locked_by;
  }
  if (node.is_switch) {
    json["entry_port"] = node.entry_port;
    json["ports"] = Json::array();
    for (uint32_t port = 0; port < node.ports.size(); ++port) {
      json["ports"].push_back(port_json(map, port, node.ports[port]));
    }
  }
  return json;
}

}  // namespace

std::string identity_text(uint32_t identity) {
  return base::formatted("%04x:%04x", identity & 0xFFFF, identity >> 16);
}

std::string tree_text(const FabricMap& map) {
  std::string out;
  device_line(map, 0, &out);
  for (size_t i = 1; i < map.nodes.size(); ++i) {
    if (map.nodes[i].parent == 0) {
      indent(&out, 1);
      subtree(map, i, 1, &out);
    }
  }
  const size_t found = map.nodes.size() - 1;
  out += apps::counted(found, "device", "devices") +
         " found: " + apps::counted(map.endpoints(), "endpoint", "endpoints") + ", " +
         apps::counted(map.switches(), "switch", "switches");
  out += "; " + apps::counted(loop_ends(map) / 2, "loop", "loops") + "; " +
         apps::counted(map.problems.size(), "problem", "problems") + '\n';
  for (const Problem& problem : map.problems) {
    out += "problem (" + problem.kind + "): " + problem.where + ": " + problem.what +
           "\n  remedy: " + problem.remedy + '\n';
  }
  return out;
}

Json to_json(const FabricMap& map) {
  Json json = {{"found", map.nodes.size() - 1},
               {"endpoints", map.endpoints()},
               {"switches", map.switches()},
               {"nodes", Json::array()},
               {"problems", Json::array()}};
  for (size_t i = 0; i < map.nodes.size(); ++i) {
    json["nodes"].push_back(node_json(map, i));
  }
  for (const Problem& problem : map.problems) {
    json["problems"].push_back({{"kind", problem.kind},
                                {"where", problem.where},
                                {"what", problem.what},
                                {"remedy", problem.remedy}});
  }
  return json;
}

std::string to_dot(const FabricMap& map) {
  std::string out = "graph fabric {\n  node [fontname=\"sans-serif\"];\n";
  const auto line = [&](size_t a, uint32_t a_port, size_t b, uint32_t b_port, const char* style) {
    out += "  n" + std::to_string(a) + " -- n" + std::to_string(b) + " [taillabel=\"" +
           (map.nodes[a].is_switch ? std::to_string(a_port) : "") + "\", headlabel=\"" +
           (map.nodes[b].is_switch ? std::to_string(b_port) : "") + "\"" + style + "];\n";
  };
  const auto skipped = [&](const std::string& device, const std::string& port) {
    const std::string unknown = device + "p" + port;
    out += "  " + unknown + " [label=\"?\", shape=circle, color=red];\n  " + device + " -- " +
           unknown + " [taillabel=\"" + port + "\", color=red];\n";
  };
  for (size_t i = 0; i < map.nodes.size(); ++i) {
    out += "  n" + std::to_string(i) + " [label=\"" + map.name(i) +
           "\", shape=" + (map.nodes[i].is_switch ? "box" : "ellipse") +
           (i == 0 ? ", style=bold" : "") + "];\n";
  }
  for (size_t i = 1; i < map.nodes.size(); ++i) {
    const Node& node = map.nodes[i];
    line(node.parent, node.parent_port, i, node.entry_port, "");
    for (uint32_t port = 0; port < node.ports.size(); ++port) {
      const PortView& view = node.ports[port];
      // A loop is seen from both of its ends.
      const bool first = view.node > i || (view.node == i && view.peer_port >= port);
      if (view.state == PortView::kLoop && first) {
        line(i, port, view.node, view.peer_port, ", style=dashed");
      } else if (view.state == PortView::kSkipped) {
        skipped("n" + std::to_string(i), std::to_string(port));
      }
    }
  }
  return out + "}\n";
}

}  // namespace rio::tool
