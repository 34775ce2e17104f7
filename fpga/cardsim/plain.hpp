/// @file
/// A card for ivshmem-plain: the BAR is a file that QEMU maps too.
#pragma once

#include <memory>

#include "fpga/cardsim/attachment.hpp"

namespace rio::cardsim {

/// Make the BAR's file and wait for a guest that polls.
[[nodiscard]] int attach_by(const name::Plain& plain, const CardSpec& spec,
                            std::unique_ptr<Attachment>* out);

}  // namespace rio::cardsim
