/// @file
/// libfabric's calls on a domain.
#pragma once

#include <rdma/fi_domain.h>

namespace rio::ofi {

/// fi_domain().
int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** out, void* user_context);

}  // namespace rio::ofi
