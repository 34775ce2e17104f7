/// @file
/// The counts of a rail, as all programs show them in JSON.
#pragma once

#include "lib/msg/rail_stats.hpp"

namespace rio::apps {

/// Add the counts of messages to an object. @param out an object of nlohmann's library, ordered or
/// not.
template <class Json>
void add_rail_counts(const msg::RailStats& stats, Json* out) {
  out->update(Json{{"sent", stats.sent},
                   {"sent_bytes", stats.sent_bytes},
                   {"received", stats.received},
                   {"received_bytes", stats.received_bytes},
                   {"failed", stats.failed},
                   {"again", stats.again},
                   {"moves", stats.moves},
                   {"downs", stats.downs},
                   {"paths", stats.paths},
                   {"paths_up", stats.paths_up},
                   {"gone", stats.gone != 0}});
}

}  // namespace rio::apps
