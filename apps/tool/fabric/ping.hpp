/// @file
/// Round trips to an endpoint: its identity is read, by a maintenance request.
#pragma once

#include <string>

#include "apps/tool/context.hpp"
#include "apps/tool/fabric/maint_access.hpp"

namespace rio::tool::fabric {

struct PingResult {
  uint32_t dest_id = 0;
  uint32_t sent = 0;
  uint32_t answered = 0;
  uint32_t identity = 0;  ///< of the last answer
  double min_us = 0.0;    ///< of answers; 0 if there was none
  double mean_us = 0.0;
  double max_us = 0.0;
};

/// @param count at least 1. @return 0, also if nothing answered; -errno: the card itself failed.
[[nodiscard]] int ping(MaintAccess& access, uint32_t dest_id, uint32_t count, PingResult* out);

/// @param is_model the figures are an emulated card's, and are marked so.
[[nodiscard]] Json ping_json(const PingResult& result, bool is_model);
[[nodiscard]] std::string ping_text(const PingResult& result, bool is_model);

}  // namespace rio::tool::fabric
