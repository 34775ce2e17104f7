/// @file
/// fi_poll_open(): tells which of several queues and counters have news.
#pragma once

#include <rdma/fi_domain.h>

namespace rio::ofi {

int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** out);

}  // namespace rio::ofi
