/// @file
/// fi_fabric().
#pragma once

#include "lib/ofi/fid.hpp"

namespace rio::ofi {

/// A name, and what every object opened from it needs.
struct FiFabric : fid_fabric, Used {
  using Fid = fid_fabric;
};

}  // namespace rio::ofi
