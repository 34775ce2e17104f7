/// @file
/// A fabric as text, as JSON, and as a drawing for Graphviz.
#pragma once

#include <string>

#include "apps/tool/global_options.hpp"
#include "lib/enumerate/fabric_map.hpp"

namespace rio::tool {

/// A line for each device and each port with something behind it, then the problems.
[[nodiscard]] std::string tree_text(const enumerate::FabricMap& map);
[[nodiscard]] Json to_json(const enumerate::FabricMap& map);
/// For `dot -Tsvg`.
[[nodiscard]] std::string to_dot(const enumerate::FabricMap& map);

/// "10ee:7210", vendor and device as lspci writes them.
[[nodiscard]] std::string identity_text(uint32_t identity);

}  // namespace rio::tool
