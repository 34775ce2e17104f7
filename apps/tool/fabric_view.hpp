/// @file
/// A fabric as text, as JSON, and as a drawing for Graphviz.
#pragma once

#include <string>

#include "apps/tool/global_options.hpp"
#include "lib/enumerate/fabric_map.hpp"
#include "lib/enumerate/ping.hpp"

namespace rio::tool {

/// A line for each device and each port with something behind it, then the problems.
[[nodiscard]] std::string tree_text(const enumerate::FabricMap& map);
[[nodiscard]] Json to_json(const enumerate::FabricMap& map);
/// For `dot -Tsvg`.
[[nodiscard]] std::string to_dot(const enumerate::FabricMap& map);

/// @param is_model the figures are an emulated card's, and are marked so.
[[nodiscard]] Json ping_json(const enumerate::PingResult& result, bool is_model);
[[nodiscard]] std::string ping_text(const enumerate::PingResult& result, bool is_model);

/// "10ee:7210", vendor and device as lspci writes them.
[[nodiscard]] std::string identity_text(uint32_t identity);

}  // namespace rio::tool
