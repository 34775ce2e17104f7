#include "lib/enumerate/fabric_map.hpp"

#include <algorithm>

namespace rio::enumerate {

size_t FabricMap::switches() const {
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const Node& node) { return node.is_switch; }));
}

size_t FabricMap::endpoints() const {
  return nodes.empty() ? 0 : nodes.size() - 1 - switches();
}

std::string FabricMap::name(size_t node) const {
  if (node == 0) {
    return "this card";
  }
  if (!nodes[node].is_switch) {
    return nodes[node].dest_id == kNoDestId ? "endpoint without destID"
                                            : "destID " + std::to_string(nodes[node].dest_id);
  }
  const auto number =
      std::count_if(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(node) + 1,
                    [](const Node& one) { return one.is_switch; });
  return "switch " + std::to_string(number);
}

std::string FabricMap::place(const Place& at) const {
  return nodes[at.node].is_switch ? name(at.node) + " port " + std::to_string(at.port)
                                  : "the link of " + name(at.node);
}

}  // namespace rio::enumerate
