/// @file
/// Whether a frame may enter a fabric. Frames are foreign bytes.
#pragma once

#include "fpga/model/frame.hpp"

namespace rio::wire {

/// @param head a copy of the frame's header. @param response in which kind of ring it is.
/// @return false: no card sends such a frame.
[[nodiscard]] bool may_travel(const model::Frame& head, bool response);

/// Whether a switch can carry out a maintenance request; else it answers ERROR.
[[nodiscard]] bool is_sane_maintenance(const model::Frame& head);

}  // namespace rio::wire
