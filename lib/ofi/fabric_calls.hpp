/// @file
/// libfabric's calls on a fabric.
#pragma once

#include <rdma/fabric.h>

namespace rio::ofi {

/// Opens the fabric: one of the provider's two calls.
int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* user_context);

}  // namespace rio::ofi
