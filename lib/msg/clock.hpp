/// @file
/// The time that waits are measured with.
#pragma once

#include "base/clock.hpp"

namespace rio::msg {

using base::now_ns;

}  // namespace rio::msg
