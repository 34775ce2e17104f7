/// @file
/// Which rails have carried the messages of a measurement.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/tag/tagged_context.hpp"

namespace rio::msgrate {

/// Counts of each rail of a port since it was opened: an array, in the order of the card's name.
[[nodiscard]] nlohmann::json rails_json(const msg::MessagePort& port);
/// Print a line for each rail of rails_json(), on stdout; nothing if there is one.
void print_rails(const nlohmann::json& rails);

}  // namespace rio::msgrate
