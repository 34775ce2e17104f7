/// @file
/// Checks frames before they enter a fabric, and copies them. Frames are foreign bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "fpga/model/frame_ring.hpp"

namespace rio::wire {

/// Whether a frame goes in rings of responses. @return none: no card sends frames of this type.
[[nodiscard]] std::optional<bool> is_response(model::FrameType type);

/// Check a frame of a wire without runs (kPull). @param head a copy of its header. @param response
/// whether it is in a ring of responses. @return false: no card sends such a frame.
[[nodiscard]] bool may_travel(const model::Frame& head, bool response);

/// Copy the header out of a frame's bytes. @param frame at least a header.
[[nodiscard]] model::Frame head_of(const uint8_t* frame);

/// Put a copy of a frame into a ring; it is visible after publish(). @param head its `bytes` are
/// checked: at least a header, a multiple of 32. @param payload of the frame, padding included.
/// @return false: there is no room.
[[nodiscard]] bool put_frame(model::FrameWriter& ring, const model::Frame& head,
                             const uint8_t* payload);

}  // namespace rio::wire
