/// @file
/// fi_fabric().
#pragma once

#include "lib/ofi/fid.hpp"

namespace rio::ofi {

/// A name, and what every object opened from it needs.
struct FiFabric : fid_fabric, Used {
  using Fid = fid_fabric;
};

/// Opens the fabric: the provider's entry.
int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* user_context);

}  // namespace rio::ofi
