/// @file
/// Hugepages in the order of their physical addresses. Internal to pmd/bus/vfio.
#pragma once

#include <cstddef>

#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// Map hugepages, zeroed and shared with children, so that those which are neighbours in bus
/// addresses are neighbours in memory. The kernel hands them out in any order, after a boot mostly
/// from the top down: as they come, no two would be contiguous for a card without an IOMMU.
/// @param len_bytes a multiple of 2 MiB. @param va aligned to 2 MiB; unmapped by the caller.
/// @return 0, -ENOMEM (too few), -ENOSYS or -EINVAL (the kernel cannot), or what Backend::map says.
[[nodiscard]] int map_sorted_hugepages(Kernel& kernel, Backend& backend, size_t len_bytes,
                                       void** va);

}  // namespace rio::pmd::vfio
