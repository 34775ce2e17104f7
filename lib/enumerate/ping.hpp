/// @file
/// Round trips to an endpoint: its identity is read, by a maintenance request.
#pragma once

#include <cstdint>

#include "lib/enumerate/maint_access.hpp"

namespace rio::enumerate {

struct PingResult {
  uint32_t answered = 0;
  uint32_t identity = 0;  ///< of the last answer
  double min_us = 0.0;    ///< of answers; 0 if there was none
  double mean_us = 0.0;
  double max_us = 0.0;
};

/// Read the identity of an endpoint `count` times and time each answer. Lost answers are not asked
/// for again. One thread. @param count at least 1. @return 0, also if nothing answered; -errno: the
/// card itself failed.
[[nodiscard]] int ping(MaintAccess& access, uint32_t dest_id, uint32_t count, PingResult* out);

}  // namespace rio::enumerate
