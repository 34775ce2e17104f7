/// @file
/// Makes a raw device from a device that a bus of EAL has found, and removes it.
#pragma once

#include <memory>

#include "pmd/raw/device.hpp"

struct rte_device;

namespace rio::pmd {

/// Give a device to rawdev, which owns the object from now on, even on failure. @param driver_name
/// a constant. @return 0 or -errno.
[[nodiscard]] int register_device(rte_device* parent, const char* driver_name, int numa_node,
                                  std::unique_ptr<RawDevice> device);

/// Stop and close the raw device of this name and remove it from rawdev. @return 0, -ENODEV.
[[nodiscard]] int unregister_device(const char* name);

}  // namespace rio::pmd
