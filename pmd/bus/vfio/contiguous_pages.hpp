/// @file
/// Hugepages that are neighbours in physical memory. Internal to pmd/bus/vfio.
#pragma once

#include <cstddef>

#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// Map hugepages, zeroed and shared with children, that are contiguous in bus addresses. Without an
/// IOMMU that takes a search, since the kernel hands hugepages out in any order. It takes more of
/// them, up to all that are free, maps the right ones in order, and gives the rest back. @param
/// len_bytes a multiple of 2 MiB. @param free_pages about how many hugepages are free. @param va
/// aligned to 2 MiB; the caller unmaps it. @return 0, -ENOMEM (too few, or no neighbours), -ENOSYS
/// or -EINVAL (the kernel has no files of hugepages), or as Backend::map().
[[nodiscard]] int map_contiguous_hugepages(Kernel& kernel, Backend& backend, size_t len_bytes,
                                           size_t free_pages, void** va);

/// Map addresses that begin on 2 MiB, private to the process or shared with its children. @param
/// flags of mmap(), without a file. @param va the caller unmaps it. @return 0 or -errno.
[[nodiscard]] int map_on_huge_border(Kernel& kernel, size_t len_bytes, int prot, int flags,
                                     void** va);

}  // namespace rio::pmd::vfio
