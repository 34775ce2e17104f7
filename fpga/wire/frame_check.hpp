/// @file
/// Checks frames before they enter a fabric. Frames are foreign bytes.
#pragma once

#include <optional>

#include "fpga/model/frame.hpp"

namespace rio::wire {

/// Whether a frame goes in rings of responses. @return none: no card sends frames of this type.
[[nodiscard]] std::optional<bool> is_response(model::FrameType type);

/// Check a frame of a wire without runs (kPull). @param head a copy of its header. @param response
/// whether it is in a ring of responses. @return false: no card sends such a frame.
[[nodiscard]] bool may_travel(const model::Frame& head, bool response);

}  // namespace rio::wire
