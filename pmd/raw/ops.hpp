/// @file
/// The functions behind struct rte_rawdev_ops, by file.
#pragma once

#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "fpga/regs/gen/rio_names.hpp"
#include "pmd/raw/device.hpp"

namespace rio::pmd {

/// Gets the device. Makes the calling function return -ENODEV if the device was closed.
inline RawDevice* device_of(const rte_rawdev* dev) {
  return static_cast<RawDevice*>(dev->dev_private);
}

/// Runs `work(RawDevice&)` under the control lock. @return what it returned, or -ENODEV.
template <typename Work>
int with_device(const rte_rawdev* dev, Work&& work) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = device_of(dev);
  return device == nullptr ? -ENODEV : work(*device);
}

/// Runs `work(RawDevice&)` under the control lock. @return what it returned, or `otherwise` where
/// there is no such device.
template <typename Result, typename Work>
Result with_device(uint16_t dev_id, Result otherwise, Work&& work) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = find_device(dev_id);
  return device == nullptr ? otherwise : work(*device);
}

/// Calls `visit(RegName)` for the single words of block "id" or "port", but those of the chain of
/// blocks, in the order of the register map.
template <typename Visit>
void each_word(std::string_view block, Visit&& visit) {
  for (const regs::names::RegName& reg : regs::names::kRegisters) {
    const std::string_view name = reg.name;
    if (reg.block == block && reg.count == 1 && name != "block" && name != "next") {
      visit(reg);
    }
  }
}
/// "ID/MAGIC". @param between '/'.
[[nodiscard]] std::string in_capitals(const regs::names::RegName& reg, char between);

// io.cc; hot: no lock
int enqueue_buffers(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count,
                    rte_rawdev_obj_t context);
int dequeue_buffers(rte_rawdev* dev, rte_rawdev_buf** buffers, unsigned count,
                    rte_rawdev_obj_t context);

// xstats.cc
int xstats_get(const rte_rawdev* dev, const unsigned ids[], uint64_t values[], unsigned n);
int xstats_names(const rte_rawdev* dev, rte_rawdev_xstats_name* names, unsigned size);
uint64_t xstats_by_name(const rte_rawdev* dev, const char* name, unsigned* id);
int xstats_reset(rte_rawdev* dev, const uint32_t ids[], uint32_t count);

// attributes.cc
int attribute_get(rte_rawdev* dev, const char* name, uint64_t* value);
int attribute_set(rte_rawdev* dev, const char* name, uint64_t value);

// dump.cc
int dump(rte_rawdev* dev, std::FILE* file);

// selftest.cc
int selftest(uint16_t dev_id);

}  // namespace rio::pmd
