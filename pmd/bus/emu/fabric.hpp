/// @file
/// The cables of this process, by name, and its fabrics, by topology file.
#pragma once

#include <memory>
#include <string>

#include "fpga/model/card.hpp"

namespace rio::pmd {

/// Thread-safe. The end that is given belongs to the caller; when both ends of a cable are gone
/// its name is free again.
/// @param name "loop" is a loop-back of its own each time.
/// @param side 0 or 1. @param plug the end's place, free again when this is destroyed; destroy the
/// wire before. @return -EBUSY: the cable has two ends already.
[[nodiscard]] int plug_in(const std::string& name, std::unique_ptr<model::Wire>* out, int* side,
                          std::shared_ptr<void>* plug);

/// Plug into the fabric of a topology file, which is made if no card is in it yet. It is gone with
/// its last card. Thread-safe. The log says what is wrong.
/// @return as wire::switched::load_topology() and wire::switched::Fabric::plug().
[[nodiscard]] int plug_into_fabric(const std::string& topology, const std::string& endpoint,
                                   std::unique_ptr<model::Wire>* out);

}  // namespace rio::pmd
