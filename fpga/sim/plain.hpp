/// @file
/// A card for ivshmem-plain: the BAR is a file that QEMU maps too.
#pragma once

#include <memory>

#include "fpga/sim/attachment.hpp"

namespace rio::sim {

/// Make the BAR's file and wait for a guest that polls.
[[nodiscard]] int attach_plain(const CardSpec& spec, std::unique_ptr<Attachment>* out);

}  // namespace rio::sim
