/// @file
/// Chooses the kind of an attachment.
#pragma once

#include <memory>

#include "fpga/cardsim/attachment.hpp"

namespace rio::cardsim {

/// Make the attachment that `spec` describes; then sockets listen and files exist. @return 0, or
/// -errno, reported on stderr.
[[nodiscard]] int attach(const CardSpec& spec, std::unique_ptr<Attachment>* out);

}  // namespace rio::cardsim
