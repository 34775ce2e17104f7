/// @file
/// A card for ivshmem-plain: QEMU maps the BAR's file, too.
#pragma once

#include <memory>

#include "fpga/cardsim/attachment.hpp"

namespace rio::cardsim {

/// Make the BAR's file and wait for a guest, which polls. @return 0, or -errno, reported on stderr.
[[nodiscard]] int attach_by(const name::Plain& plain, const CardSpec& spec,
                            std::unique_ptr<Attachment>* out);

}  // namespace rio::cardsim
