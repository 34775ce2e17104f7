/// @file
/// The cables of this process, by name.
#pragma once

#include <memory>
#include <string>

#include "fpga/model/card.hpp"

namespace rio::pmd {

/// Thread-safe. The end that is given belongs to the caller; when both ends of a cable are gone
/// its name is free again.
/// @param name "loop" is a loop-back of its own each time.
/// @return -EBUSY: the cable has two ends already.
[[nodiscard]] int plug_in(const std::string& name, std::unique_ptr<model::Wire>* out, int* side);
/// A side was unplugged (its wire is destroyed).
void unplug(const std::string& name, int side);

}  // namespace rio::pmd
