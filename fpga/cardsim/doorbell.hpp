/// @file
/// A card for ivshmem-doorbell: rio-cardsim is the ivshmem server, and raises MSI-X.
#pragma once

#include <memory>

#include "fpga/cardsim/attachment.hpp"

namespace rio::cardsim {

/// Listen for a guest. @return 0, or -errno, told on stderr.
[[nodiscard]] int attach_by(const name::Doorbell& doorbell, const CardSpec& spec,
                            std::unique_ptr<Attachment>* out);

}  // namespace rio::cardsim
