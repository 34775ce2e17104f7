/// @file
/// Checks frames before they enter a fabric. Frames are foreign bytes.
#pragma once

#include "fpga/model/frame.hpp"

namespace rio::wire {

/// Check a frame. @param head a copy of its header. @param response whether it is in a ring of
/// responses. @return false: no card sends such a frame.
[[nodiscard]] bool may_travel(const model::Frame& head, bool response);

/// Whether a switch can carry out a maintenance request; if not, it answers ERROR.
[[nodiscard]] bool is_sane_maintenance(const model::Frame& head);

}  // namespace rio::wire
